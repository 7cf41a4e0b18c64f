package transform

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// Corruptions of ImageNet-C: they change p in place; s has one severity; the caller clips to [0,
// 1].

// gaussianNoise adds normal noise with the standard deviation s[0] to each value.
func gaussianNoise(p canvas, s settings, r *rand.Rand) {
	for i := range p.data {
		p.data[i] += float32(s[0] * r.NormFloat64())
	}
}

// shotNoise draws photon counts: a value x becomes Poisson(x c) / c, where c = s[0] is the mean
// number of photons of a white pixel.
func shotNoise(p canvas, s settings, r *rand.Rand) {
	for i, v := range p.data {
		if v <= 0 {
			p.data[i] = 0
			continue
		}
		p.data[i] = float32(distuv.Poisson{Lambda: float64(v) * s[0], Src: r}.Rand() / s[0])
	}
}

// impulseNoise sets values to 0 or 1 with equal probability: each value with probability s[0].
func impulseNoise(p canvas, s settings, r *rand.Rand) {
	for i := range p.data {
		if r.Float64() >= s[0] {
			continue
		}
		p.data[i] = float32(r.IntN(2))
	}
}
