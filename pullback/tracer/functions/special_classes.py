"""Every ufunc of scipy.special: differentiable, value only, or refused with what to write instead.

A name is differentiable when it stands in the tables of `special` and not below. A test walks the namespace, so that a
new SciPy cannot bring a ufunc that nobody has thought about. `CONDITIONS` are for the documentation.
"""

from collections.abc import Mapping

from pullback.tracer.functions.classes import Class

STEP = "piecewise constant: its derivative is zero wherever it exists"

VALUE_ONLY: Mapping[str, str] = {"gammasgn": STEP, "round": STEP}

_ORDER = "the order must be a constant whole number, or an integer argument, which is guarded"

CONDITIONS: Mapping[str, str] = {
    **dict.fromkeys(("jv", "jve", "jn", "yv", "yve", "yn", "kv", "kve", "kn"), f"{_ORDER}; up to 100"),
    **dict.fromkeys(("iv", "ive"), f"{_ORDER}; up to 30"),
    **dict.fromkeys(
        (
            "eval_chebyt",
            "eval_chebyu",
            "eval_sh_chebyt",
            "eval_sh_chebyu",
            "eval_legendre",
            "eval_sh_legendre",
            "eval_laguerre",
            "eval_hermite",
            "eval_hermitenorm",
        ),
        f"{_ORDER}; up to 200",
    ),
    **dict.fromkeys(("gammainc", "gammaincc"), "in both arguments; in the first up to the 8th derivative"),
    **dict.fromkeys(("gdtr", "gdtrc", "chdtr", "chdtrc"), "in all arguments; in the shape up to the 8th derivative"),
    **dict.fromkeys(("pdtr", "pdtrc"), "in the mean; the count is a step"),
    "exprel": "up to the 100th derivative",
    "loggamma": "of real numbers; NaN below 0, where it is complex",
}

_NEWTON = (
    "pullback has no op for the inverse of this distribution function; solve for it by Newton steps from a good guess, "
    "which differentiate"
)
_BETA = (
    "the incomplete beta function has no rule in pullback: its derivatives in a and b are no elementary functions; "
    "integrate the density instead (Gauss-Legendre nodes from np.polynomial.legendre.leggauss)"
)
_NONCENTRAL = "noncentral distributions have no rule in pullback; add up the central ones with Poisson weights"
_COMPLEX = "its values are complex functions that pullback has no op for"
_ELLIPTIC = (
    "pullback has no op for elliptic integrals; integrate with fixed nodes (np.polynomial.legendre.leggauss), or "
    "iterate the arithmetic-geometric mean"
)
_HYPERGEOMETRIC = "hypergeometric functions have no rule in pullback; add up the terms of their series in a loop"
_INTEGRAL = "pullback has no op for this integral; integrate with fixed nodes (np.polynomial.legendre.leggauss)"
_WAVE = "Mathieu, spheroidal and parabolic cylinder functions have no rule in pullback"
_KELVIN = "Kelvin, Struve and Airy functions and integrals of Bessel functions have no rule in pullback"
_REAL_DEGREE = "polynomials with a real parameter have no rule in pullback; write their three-term recurrence as a loop"
_SUM = "pullback has no rule for this distribution function; write its sum or integral with NumPy functions"


def _refused() -> dict[str, str]:
    groups = {
        _BETA: "betainc betaincc bdtr bdtrc nbdtr nbdtrc fdtr fdtrc stdtr",
        _NEWTON: (
            "betaincinv betainccinv btdtria btdtrib bdtri bdtrik bdtrin nbdtri nbdtrik nbdtrin fdtri fdtridfd stdtrit "
            "stdtridf chdtri chdtriv gammaincinv gammainccinv gdtria gdtrib gdtrix pdtri pdtrik kolmogi smirnovi "
            "ndtri_exp nrdtrimn nrdtrisd"
        ),
        _NONCENTRAL: (
            "chndtr chndtridf chndtrinc chndtrix ncfdtr ncfdtri ncfdtridfd ncfdtridfn ncfdtrinc nctdtr nctdtridf "
            "nctdtrinc nctdtrit"
        ),
        _COMPLEX: "hankel1 hankel1e hankel2 hankel2e wofz wrightomega modfresnelm modfresnelp kelvin",
        _ELLIPTIC: "agm ellipe ellipeinc ellipj ellipk ellipkinc ellipkm1 elliprc elliprd elliprf elliprg elliprj",
        _HYPERGEOMETRIC: "hyp0f1 hyp1f1 hyp2f1 hyperu wright_bessel log_wright_bessel zetac",
        _INTEGRAL: "dawsn erfi exp1 expi expn fresnel shichi sici spence owens_t voigt_profile",
        _WAVE: (
            "mathieu_a mathieu_b mathieu_cem mathieu_modcem1 mathieu_modcem2 mathieu_modsem1 mathieu_modsem2 "
            "mathieu_sem obl_ang1 obl_ang1_cv obl_cv obl_rad1 obl_rad1_cv obl_rad2 obl_rad2_cv pro_ang1 pro_ang1_cv "
            "pro_cv pro_rad1 pro_rad1_cv pro_rad2 pro_rad2_cv pbdv pbvv pbwa"
        ),
        _KELVIN: (
            "airy airye bei beip ber berp kei keip ker kerp besselpoly it2i0k0 it2j0y0 it2struve0 itairy iti0k0 itj0y0 "
            "itmodstruve0 itstruve0 modstruve struve"
        ),
        _REAL_DEGREE: (
            "eval_chebyc eval_chebys eval_gegenbauer eval_genlaguerre eval_jacobi eval_sh_jacobi lpmv sph_harm"
        ),
        _SUM: "kolmogorov smirnov tklmbda",
    }
    return {name: reason for reason, names in groups.items() for name in names.split()}


REFUSED: Mapping[str, str] = _refused()


def classify(name: str, known: bool) -> Class | None:
    """The class of a ufunc of scipy.special; `known` says whether a rule for it stands in the tables."""
    if name in REFUSED:
        return Class("refused", REFUSED[name])
    if name in VALUE_ONLY:
        return Class("value only", VALUE_ONLY[name])
    return Class("differentiable", CONDITIONS.get(name, "")) if known else None
