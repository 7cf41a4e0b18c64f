package linalg

import (
	"runtime"
	"sync/atomic"

	"github.com/noether-ml/noether/internal/gram"
)

// vectors says whether package gram has loops for this processor: those that add up products take half the time of Go's.
var vectors = gram.Available()

// fused says whether sums of float32 products are formed by a kernel of package gram. Accelerate turns it off: on two cores
// OpenBLAS took 20.0 s by the clock where the kernel took 21.7.
var fused = gram.Available()

// threads bounds the goroutines that one product is shared by, as Backend.SetThreads does the threads of a library; 0: one
// for each core.
var threads atomic.Int32

func workers() int {
	if n := int(threads.Load()); n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// observations are the variables from to to of a block.
func (b Block) observations(from, to int) gram.Rows {
	return gram.Rows{Data: b.rows[from:], Stride: b.p, N: b.N(), Shift: b.late[from:to]}
}

func (s *Scatter[T]) addFused(b Block, part *Scatter[float32], scratch *Scratch, all, own step) {
	if narrow, ok := any(s).(*Scatter[float32]); ok {
		scratch.work.AddTriangle(b.observations(0, b.p), gram.Sums[float64]{}, sumsOf(narrow, all), workers())
		if part != nil {
			part.addFused(b, nil, scratch, own, step{})
		}
		return
	}
	scratch.work.AddTriangle(b.observations(0, b.p), sumsOf(any(s).(*Scatter[float64]), all), sumsOf(part, own), workers())
}

// sumsOf is what the products of a block are added to, whose means take a step; nothing where s is nil.
func sumsOf[T float32 | float64](s *Scatter[T], st step) gram.Sums[T] {
	if s == nil {
		return gram.Sums[T]{}
	}
	return gram.Sums[T]{Data: s.Data, U: st.scaled(), V: st.delta}
}

func (c *Cross) addFused(b Block, partner []int, scratch *Scratch, st step) {
	x, y := b.observations(0, c.D), b.observations(c.D, b.p)
	y.Order = partner
	scratch.work.AddProducts(x, y, c.sums(st), gram.Sums[float32]{}, workers())
}

// sums is what the products of pairs are added to, whose means take a step.
func (c *Cross) sums(st step) gram.Sums[float64] {
	return gram.Sums[float64]{Data: c.Data, U: st.scaled()[:c.D], V: st.delta[c.D:]}
}

// scaled is the step of the means times its factor.
func (st step) scaled() []float64 {
	out := make([]float64, len(st.delta))
	for i, v := range st.delta {
		out[i] = st.factor * v
	}
	return out
}
