"""Statements that write in place, on arrays `x` of shape (3, 4) and `y` of shape (4,).

A function that calls `exec` may read every global of its module, and a trace watches them all: they are few here.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

STATEMENTS: list[str] = [
    "x[0]=y",
    "x[:,1]=5",
    "x[1:]=x[:-1]",
    "x[1:]+=x[:-1]",
    "x[x>0]=0",
    "x[x>0]*=2",
    "x[x>0]=x[x>0]**2",
    "x[[0,2]]=y",
    "x[[0,0]]+=1",
    "x.T[0]=7",
    "x.reshape(-1)[3]=9",
    "x.ravel()[::2]*=3",
    "x.T.ravel()[0]=100",
    "x.flat[5]=1",
    "x.flat[[1,2]]=y[:2]",
    "x.flat=y",
    "x[::-1][0]=y",
    "x[1][2]=4",
    "v=x[1:];w=v[:,::2];w[...]=0;x+=v.sum()",
    "np.add.at(x,[0,0,1],1.0)",
    "np.add.at(x,([0,0],[1,1]),y[:2])",
    "np.multiply.at(x,[0,0],2.0)",
    "np.maximum.at(x,0,1.0)",
    "np.copyto(x,y)",
    "np.copyto(x,0,where=x>0)",
    "np.put(x,[1,-1],[5,6])",
    "np.place(x,x>0,[1,2])",
    "np.putmask(x,x>0,y)",
    "x.fill(3)",
    "x.sort()",
    "x.sort(axis=0)",
    "np.fill_diagonal(x,y[0])",
    "np.add(x,1,out=x)",
    "np.sqrt(np.abs(x),out=x,where=x>0)",
    "x[...]=y",
    "x[1,1:3]=y[:2]",
    "x-=x.mean(0)",
    "x/=2",
    "x**=2",
    "x[0],x[1]=x[1].copy(),x[0].copy()",
    "x[0,0],x[1,1]=x[1,1],x[0,0]",
    "np.put_along_axis(x,np.argmax(x,1)[:,None],99,1)",
    "x[np.arange(3),[0,1,2]]=y[:3]",
    "x[:, [True,False,True,False]]=0",
    "x[np.array([True,False,True])]=y",
    "x=np.zeros(5);x[:4]=y;x=np.cumsum(x)",
    "x=np.empty((2,4));x[0]=y;x[1]=x[0]*2",
    "s=x[0,0];s+=5",
    "x.real[0]=3",
    "x[None,0]=y",
    "x[x>0]=np.arange(float((x>0).sum()))",
    "x[x[:,0]>0]=y",
    "x[x[:,0]>0,1]=5.",
    "z=x;z+=1",
    "x=x.T+1;v=x.reshape(-1);v[0]=100",
    "x=np.asfortranarray(x);v=x.T.reshape(-1);v[0]=100",
    "x.shape=(4,3)",
    "x.resize(2,3)",
    "np.clip(x,0,1,out=x)",
    "x[:,0]=x[:,1]=y[:3]",
    "def g(a):\n  a[0]=1\ng(x[1])\n",
    "a,b=x[0],x[1];a+=b",
    "L=[x[0],x[1]];L[0][:]=0",
    "x[2:0:-1]=x[:2]",
    "a=np.zeros(4);b=np.ones(4);a[...]=b;a[0]=5;x[0]=b;x[1]=a",
    "a=np.ones(4);a[...]=2.;a[1:]=a[:-1]*x[0,0];x[0]=a",
    "a=np.full((2,2),3.);np.outer(a[:,0],a[0],out=a);a.cumsum(axis=1,out=a);x[:2,:2]=a",
    "np.asarray(x,order='F')[...]*=2",
    "np.require(x.T,requirements='C')[...]=0",
    "np.array(x,order='F',copy=None)[...]=0",
    "x.astype(float,order='F',copy=False)[...]=0",
    "np.negative.at(x,[0,0,1])",
    "np.multiply.at(x,np.argsort(x[:,0])[:2],3.)",
    "np.einsum('ii->i',x[:3,:3])[...]=7",
    "np.einsum('ij->ji',x)[0]=y[:3]",
    "np.lib.stride_tricks.sliding_window_view(x,1,axis=1,writeable=True)[...,0]=y",
    "np.pad(x,0,mode='edge')[...]=0",
    "x.conj()[0]=y",
    "x.view(np.ndarray)[0]=y",
    "x.squeeze().shape=(4,3)",
    "v=x[1:];v.flags.writeable=False;x[1]=y",
    "x[x>0]+=np.arange(float((x>0).sum()))",
    "c=x[x>0];c[0]=9;x[x>0]=c",
    "c=x[x>0];c.reshape(-1)[::2]*=2;x[x>0]=c",
    "c=x[x>0];c.sort();x[x>0]=c",
    "c=x[x>0];c[c>1]=1;x[0,0]=c.sum()",
    "c=x[x>0];np.add(c,1,out=c);x[x>0]=c",
    "c=x[x>0];np.asarray(c)[0]=9;x[x>0]=c",
    "c=x[x>0];d=c;d+=np.arange(float(len(c)));x[x>0]=c",
    "c=x[(x>0).any(axis=1)];c.real=1;x[0]=c[0]",
    "x[0,0]=x[x>0].max(initial=5.)",
    "x[0,0]=np.empty_like(x[x>0]).size",
    "x[0,1,...]+=x.sum()",
    "x[:0]=x[:0,::-1];x[1:1,None]*=2",
    "np.delete(x,[],axis=0)[...]=0",
    "np.add(x.flat,1,out=x.reshape(-1))",
    "a=np.full(4,0.25);a.sort();a.sort(axis=0);x[0]=a",
    "x[False]=5;x[True]=x[True]*2;x[0,False]=1",
    "x[x[0,0]>9]=7;x[x[0,0]<9,1]=x[False].sum()",
]


def runner(statements: str) -> Callable[[Any, Any], Any]:
    """A function of `x` and `y` that gives `x` after the statements."""
    code = compile(statements, "statements", "exec")

    def run(x: Any, y: Any) -> Any:
        names = {"x": x.copy(), "y": y, "np": np}
        exec(code, names)
        return names["x"]

    return run
