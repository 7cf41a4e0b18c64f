package transform

import (
	"math/rand/v2"
	"sync"

	"github.com/noether-ml/noether/tensor"
)

// A Function is a transformation of images that another program computes, such as a function of
// Python.
type Function struct {
	// Strength is drawn for each Op and passed to the function; nil: the function takes none.
	Strength *Distribution
	// Call returns the transformed image, of the same shape. strength is 0 without a Strength. The
	// seed is that of all random numbers that the function draws.
	Call func(image tensor.Tensor, strength float64, seed uint64) (tensor.Tensor, error)
}

// Draw draws the strength, then the seed.
func (t Function) Draw(r *rand.Rand) Op {
	if t.Strength == nil {
		return &functionOp{call: t.Call, seed: r.Uint64()}
	}
	return &strengthOp{functionOp{call: t.Call, strength: t.Strength.Draw(r), seed: r.Uint64()}}
}

type functionOp struct {
	call     func(tensor.Tensor, float64, uint64) (tensor.Tensor, error)
	strength float64
	seed     uint64

	mutex sync.Mutex
	err   error
}

// Apply leaves dst as it is if the function fails: see Err.
func (o *functionOp) Apply(dst, src tensor.Tensor) {
	dims(dst, src)
	out, err := o.call(src, o.strength, o.seed)
	if err != nil {
		o.mutex.Lock()
		o.err = err
		o.mutex.Unlock()
		return
	}
	copy(dst.Data, out.Data)
}

func (o *functionOp) Err() error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.err
}

// A strengthOp is a functionOp whose parameter is its strength.
type strengthOp struct{ functionOp }

func (o *strengthOp) Parameter() float64 { return o.strength }
