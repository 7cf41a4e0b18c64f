package stir

import (
	"math/rand/v2"

	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
)

// startImages returns the images from which an inversion starts: those that the settings ask for
// or, if the kind of inversion is Controversial, images near x. An inversion searches for images
// with the representation of the images x by a model: m1 for STIR(m2 | m1), m2 for STIR(m1 | m2).
// The noise of an image depends only on the seed, the data, the trial, the start and the image, so
// both scores and all layers of a study start from the same noise.
func (r *run) startImages(kind string) (tensor.Tensor, error) {
	start := invert.StartKind(r.settings.Start)
	if kind == Controversial {
		start = invert.Near
	}
	k := r.job.Key
	return invert.Start(start, r.x, func(i int) *rand.Rand {
		index := -1 // i < 0: one image of noise for all
		if i >= 0 {
			index = r.samples[i].Index
		}
		return seed.Rand(k.Seed, "stir: start", string(start), k.Data, k.Trial, index)
	})
}
