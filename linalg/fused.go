package linalg

import (
	"runtime"
	"sync/atomic"

	"github.com/noether-ml/noether/internal/gram"
)

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
	var wide gram.Sums[float64]
	var narrow gram.Sums[float32]
	switch data := any(s.Data).(type) {
	case []float64:
		wide = gram.Sums[float64]{Data: data, U: all.scaled(), V: all.delta}
		if part != nil {
			narrow = gram.Sums[float32]{Data: part.Data, U: own.scaled(), V: own.delta}
		}
	case []float32:
		narrow = gram.Sums[float32]{Data: data, U: all.scaled(), V: all.delta}
		if part != nil {
			part.addFused(b, nil, scratch, own, step{})
		}
	}
	scratch.work.AddTriangle(b.observations(0, b.p), wide, narrow, workers())
}

func (c *Cross) addFused(b Block, partner []int, scratch *Scratch, st step) {
	x, y := b.observations(0, c.D), b.observations(c.D, b.p)
	y.Order = partner
	scratch.work.AddProducts(x, y, gram.Sums[float64]{Data: c.Data, U: st.scaled()[:c.D], V: st.delta[c.D:]}, gram.Sums[float32]{}, workers())
}

// scaled is the step of the means times its factor.
func (st step) scaled() []float64 {
	out := make([]float64, len(st.delta))
	for i, v := range st.delta {
		out[i] = st.factor * v
	}
	return out
}
