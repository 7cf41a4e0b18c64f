package similarity

import (
	"context"
	"fmt"
)

// fromPairs computes the statistics of n x n values.
func (r *run) fromPairs(ctx context.Context, x, y *representation, wanted []kind, out estimates) error {
	for _, k := range wanted {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e, ok := constants(x.constant, y.constant); ok {
			out[k.name] = e
			continue
		}
		var err error
		switch k.name {
		case RBFCKA:
			out[k.name], err = r.rbf(ctx, x, y)
		case RSA:
			out[k.name], err = r.rsa(ctx, x, y)
		case MutualKNN:
			out[k.name], err = r.mutual(ctx, x, y)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		x.release()
		y.release()
	}
	return nil
}

func (r *run) rbf(ctx context.Context, x, y *representation) (estimate, error) {
	k, kk, okx, err := x.radial(ctx)
	if err != nil {
		return estimate{}, err
	}
	l, ll, oky, err := y.radial(ctx)
	if err != nil {
		return estimate{}, err
	}
	if !okx || !oky {
		return undefined("more than half of the samples are at the same place: the median distance is 0"), nil
	}
	return kernelCKA(k, l, kk, ll, r.cuts, false), nil
}

func (r *run) rsa(ctx context.Context, x, y *representation) (estimate, error) {
	a, err := x.ranks(ctx)
	if err != nil {
		return estimate{}, err
	}
	b, err := y.ranks(ctx)
	if err != nil {
		return estimate{}, err
	}
	return rsa(a, b, x.n, r.cuts), nil
}

func (r *run) mutual(ctx context.Context, x, y *representation) (estimate, error) {
	k := r.settings.Neighbours
	if k > x.n-1 {
		return undefined(fmt.Sprintf("%d neighbours of %d samples: set fewer", k, x.n)), nil
	}
	a, err := x.neighbours(ctx)
	if err != nil {
		return estimate{}, err
	}
	b, err := y.neighbours(ctx)
	if err != nil {
		return estimate{}, err
	}
	return mutualNeighbours(a, b, x.n, k, r.cuts), nil
}
