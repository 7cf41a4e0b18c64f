package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/internal/train/autoencoder"
	"github.com/noether-ml/noether/internal/train/filters"
	"github.com/noether-ml/noether/tensor"
)

// gabor writes the table of figure 4: the fraction of the energy (sum of squares) of filters that
// Gabor functions explain. Values are means over the filters of a layer, and intervals are over
// trainings.
func (p plan) gabor(ctx context.Context) error {
	patterns, held, err := p.patches(ctx)
	if err != nil {
		return err
	}
	noise, err := filters.Noise(side, side, p.pick(100, 20), rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		return err
	}
	slices.Sort(noise)
	chance := stat.Quantile(0.95, stat.Empirical, noise, nil)
	fmt.Printf("For one noise image in twenty, a Gabor function explains more than %.3f\n", chance)
	var list []record
	for _, kind := range []struct {
		name          string
		target, decay float64 // mean activation that the sparsity penalty aims at; weight decay
	}{{"target -0.95, decay 0.03", -0.95, 0.03}, {"no sparsity, no decay", unpenalised, 0}} {
		var percent, exceeding []float64 // of each training
		for number := range p.trainings {
			s := p.settings(kind.decay, uint64(number+1))
			if kind.target != unpenalised {
				s.Target, s.Weight = kind.target, penaltyWeight
			}
			l, err := autoencoder.Train(ctx, p.rt, patterns, held, s)
			if err != nil {
				return err
			}
			explained, err := explained(autoencoder.Images(side, 1, l))
			if err != nil {
				return err
			}
			percent, exceeding = append(percent, 100*stat.Mean(explained, nil)), append(exceeding, float64(above(explained, chance)))
		}
		list = append(list, meanOf("explained, in percent", percent, 1, kind.name),
			meanOf("filters above 95 % of noises", exceeding, 1, kind.name))
	}
	return p.write("gabor", []string{"layer of 64 units"}, list)
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

// above returns how many values are above a bound.
func above(values []float64, bound float64) (n int) {
	for _, v := range values {
		if v > bound {
			n++
		}
	}
	return n
}
