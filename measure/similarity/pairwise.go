package similarity

import (
	"context"
	"fmt"
)

func (r *calculator) fromPairs(ctx context.Context, x, y *representation, selected []statistic, out estimates) error {
	var others []statistic // those that r.resampled computes, again for each choice of samples
	for _, k := range selected {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e, ok := constantEstimate(x.constant, y.constant); ok && !k.difference {
			out[k.name] = e
			continue
		}
		if k.name == RSA && !r.settings.isDefaultRSA() {
			k = chosenRSAStatistic()
		}
		var err error
		switch {
		case k.neighbours && r.settings.Neighbours > x.n-1:
			out[k.name] = undefinedEstimate(fmt.Sprintf("%d neighbours of %d samples: set fewer", r.settings.Neighbours, x.n))
		case k.compute != nil:
			others = append(others, k)
		case k.name == RBFCKA:
			out[k.name], err = r.rbf(ctx, x, y)
		case k.name == RSA:
			var a, b []uint32
			if a, b, err = ofBoth(ctx, x, y, (*representation).ranks); err == nil {
				out[k.name] = rsa(a, b, x.n, r.cuts)
			}
		case k.name == MutualKNN:
			out[k.name], err = r.mutualNeighbours(ctx, x, y)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		x.release()
		y.release()
	}
	defer x.release()
	defer y.release()
	return r.resampled(ctx, others, x, y, out)
}

// rbf computes rbf-cka, CKA (centred kernel alignment) with a radial basis function kernel.
func (r *calculator) rbf(ctx context.Context, x, y *representation) (estimate, error) {
	a, b, err := ofBoth(ctx, x, y, (*representation).radial)
	if err != nil {
		return estimate{}, err
	}
	if !a.defined || !b.defined {
		return undefinedEstimate("more than half of the samples are at the same place: the median distance is 0"), nil
	}
	const diagonal, unbiased = true, false
	return cka(newHSICSums(a.k, b.k, r.cuts, diagonal), a.self, b.self, unbiased), nil
}

// mutualNeighbours computes mutual-knn, the fraction of the nearest neighbours in common.
func (r *calculator) mutualNeighbours(ctx context.Context, x, y *representation) (estimate, error) {
	k := r.settings.Neighbours
	a, b, err := ofBoth(ctx, x, y, (*representation).neighbours)
	if err != nil {
		return estimate{}, err
	}
	return neighbourOverlap(a, b, x.n, k, r.cuts), nil
}
