package plan

import (
	"math/bits"

	"github.com/noether-ml/noether/internal/seed"
)

// maxListed is the number of samples up to which an Order is a list. Further samples would take
// memory in each of the tasks of a large study, which read a small part of them.
const maxListed = 10_000_000

// An Order is a random order of the samples of a data set, drawn from the study's seed.
type Order struct {
	n    int
	list []int // nil: the order is computed

	half uint // bits of each half of a position
	keys [4]uint64
}

// newOrder draws an order of n samples of a data set.
func newOrder(studySeed uint64, data string, n int) Order {
	draws := seed.Rand(studySeed, "order", data)
	if n <= maxListed {
		return Order{n: n, list: draws.Perm(n)}
	}
	return computedOrder(draws.Uint64, n)
}

// computedOrder returns an order that needs no memory for its samples: a Feistel network permutes
// the numbers below the next power of four, and is applied again to what is not below n.
func computedOrder(draw func() uint64, n int) Order {
	o := Order{n: n, half: uint(bits.Len(uint(n-1))+1) / 2}
	for i := range o.keys {
		o.keys[i] = draw()
	}
	return o
}

// Len returns the number of samples.
func (o Order) Len() int { return o.n }

// First returns the indices of the first n samples: all if there are fewer, none if n is negative.
func (o Order) First(n int) []int { return o.Range(0, max(0, min(n, o.n))) }

// Range returns the indices, into the source, of the samples at the positions from lo to hi-1. The
// caller must not change it.
func (o Order) Range(lo, hi int) []int {
	if o.list != nil {
		return o.list[lo:hi]
	}
	out := make([]int, hi-lo)
	for i := range out {
		out[i] = o.permuted(uint64(lo + i))
	}
	return out
}

func (o Order) permuted(x uint64) int {
	mask := uint64(1)<<o.half - 1
	for {
		left, right := x>>o.half, x&mask
		for _, key := range o.keys {
			left, right = right, left^mix(right^key)&mask
		}
		if x = left<<o.half | right; x < uint64(o.n) {
			return int(x)
		}
	}
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood 2014): each bit of the result depends on
// all bits of x.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
