package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/train/autoencoder"
	"github.com/noether-ml/noether/train/filters"
)

// gabor prints the fraction of the energy of filters that Gabor functions explain (figure 4): for a
// sparse layer, and for one without sparsity and decay.
func (p plan) gabor(ctx context.Context) error {
	x, err := stills(ctx, p.images, 2, side, p.pick(100, 10), 1)
	if err != nil {
		return err
	}
	patterns, held := divided(x)
	noise, err := filters.Noise(side, side, p.pick(100, 20), rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		return err
	}
	slices.Sort(noise)
	chance := stat.Quantile(0.95, stat.Empirical, noise, nil)
	fmt.Printf("For one noise image in twenty, a Gabor function explains more than %.3f\n", chance)
	sparse, plain := p.settings(0.03, 1), p.settings(0, 1)
	sparse.Target, sparse.Weight = -0.95, 100
	for _, s := range []autoencoder.Settings{sparse, plain} {
		l, err := autoencoder.Train(ctx, p.rt, patterns, held, s)
		if err != nil {
			return err
		}
		explained, err := explained(autoencoder.Images(side, 1, l))
		if err != nil {
			return err
		}
		mean, half := resample.Student(explained)
		fmt.Printf("target %g, decay %g: it explains %.3f [%.3f, %.3f] of a filter, and more than of noise for %d of %d\n", s.Target, s.Decay, mean, mean-half, mean+half, above(explained, chance), len(explained))
	}
	return nil
}

// explained returns the fraction of the energy of each filter that a Gabor function explains.
func explained(images []tensor.Tensor) ([]float64, error) {
	var out []float64
	for _, image := range images {
		g, err := filters.Fit(tensor.Tensor{Shape: []int{side, side}, Data: image.Data})
		if err != nil {
			return nil, err
		}
		out = append(out, g.Explained)
	}
	return out, nil
}

func above(values []float64, bound float64) (n int) {
	for _, v := range values {
		if v > bound {
			n++
		}
	}
	return n
}
