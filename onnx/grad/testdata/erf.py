"""Coefficients of erf in erf.go: P / Q, of degrees 7 and 8, that equals e^(x^2) erfc(x) at 16 points from 0 to 6, closer together near 0."""
import mpmath as mp

mp.mp.dps = 60
P, Q, END, BEND = 7, 8, mp.mpf(6), mp.mpf(2)


def scaled(x):
    return mp.exp(x * x) * mp.erfc(x)


count = P + Q + 1
last = END / (END + BEND)
chebyshev = [last * (1 - mp.cos(mp.pi * (2 * k + 1) / (2 * count))) / 2 for k in range(count)]
points = [BEND * t / (1 - t) for t in chebyshev]
rows = [[x**j for j in range(P + 1)] + [-scaled(x) * x**j for j in range(1, Q + 1)] for x in points]
solution = mp.lu_solve(mp.matrix(rows), mp.matrix([scaled(x) for x in points]))
p, q = list(solution[: P + 1]), [mp.mpf(1)] + list(solution[P + 1 :])
print("P", [mp.nstr(c, 20) for c in reversed(p)])
print("Q", [mp.nstr(c, 20) for c in reversed(q)])
x = [mp.mpf(k) / 200 for k in range(1201)]
error = max(abs(mp.exp(-v * v) * mp.polyval(p[::-1], v) / mp.polyval(q[::-1], v) - mp.erfc(v)) for v in x)
print("erfc is off by", mp.nstr(error, 3), "at most")
