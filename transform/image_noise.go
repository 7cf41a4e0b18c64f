package transform

import (
	"math/rand/v2"

	"github.com/noether-ml/noether/tensor"
)

// GaussianNoise adds independent normal noise to every value and clips the result to [0, 1]. Draw
// seeds the noise: an Op adds the same noise each time.
type GaussianNoise struct {
	Sigma Distribution // standard deviation, in the image's range of 0 to 1
}

// Replace replaces the input by noise, the random baseline of SEIS's section 4.1: uniform on [0, 1)
// or, with Normal, N(0, 1).
type Replace struct {
	Normal bool
}

func (t GaussianNoise) Draw(r *rand.Rand) Op {
	return noiseOp{sigma: t.Sigma.Draw(r), seed: newNoiseSeed(r)}
}

func (t Replace) Draw(r *rand.Rand) Op { return replaceOp{t.Normal, newNoiseSeed(r)} }
func (t GaussianNoise) Random() bool   { return true }
func (t Replace) Random() bool         { return true }
func (t Replace) OnMaps() bool         { return true }

type noiseSeed [2]uint64

func newNoiseSeed(r *rand.Rand) noiseSeed { return noiseSeed{r.Uint64(), r.Uint64()} }

func (s noiseSeed) rand() *rand.Rand { return rand.New(rand.NewPCG(s[0], s[1])) }

type noiseOp struct {
	sigma float64 // standard deviation
	seed  noiseSeed
}

func (o noiseOp) Parameter() float64 { return o.sigma }

// Renew returns an Op with the same parameter and other noise.
func (o noiseOp) Renew(r *rand.Rand) Op { return noiseOp{o.sigma, newNoiseSeed(r)} }

func (o noiseOp) Apply(dst, src tensor.Tensor) {
	dims(dst, src) // checks that the shapes are equal
	r := o.seed.rand()
	for i, v := range src.Data {
		dst.Data[i] = clip(v + float32(o.sigma*r.NormFloat64()))
	}
}

type replaceOp struct {
	normal bool // standard normal, not uniform on [0, 1)
	seed   noiseSeed
}

func (o replaceOp) Renew(r *rand.Rand) Op { return replaceOp{o.normal, newNoiseSeed(r)} }

func (o replaceOp) Apply(dst, src tensor.Tensor) {
	dims(dst, src)
	r := o.seed.rand()
	for i := range dst.Data {
		if o.normal {
			dst.Data[i] = float32(r.NormFloat64())
		} else {
			dst.Data[i] = r.Float32()
		}
	}
}
