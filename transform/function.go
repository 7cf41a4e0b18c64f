package transform

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/noether-ml/noether/tensor"
)

// A Function is a transformation of images that another program computes, such as a function of
// Python.
type Function struct {
	// Strength is drawn for each Op and passed to the function; nil: the function takes none.
	Strength *Distribution
	// Call returns the transformed images, of the same shapes. Each has a strength, NaN without a
	// Strength, and a seed, which is that of all random numbers that the function draws for it.
	Call func(images []tensor.Tensor, strengths []float64, seeds []uint64) ([]tensor.Tensor, error)
}

// Draw draws the strength, then the seed.
func (t Function) Draw(r *rand.Rand) Op {
	if t.Strength == nil {
		return &functionOp{call: t.Call, strength: math.NaN(), seed: r.Uint64()}
	}
	return &strengthOp{functionOp{call: t.Call, strength: t.Strength.Draw(r), seed: r.Uint64()}}
}

// Version is 2 since functions without a Strength are called without one.
func (Function) Version() int { return 2 }

type functionOp struct {
	call     func([]tensor.Tensor, []float64, []uint64) ([]tensor.Tensor, error)
	strength float64
	seed     uint64

	mutex sync.Mutex
	err   error
}

// Apply leaves dst as it is if the function fails: see Err.
func (o *functionOp) Apply(dst, src tensor.Tensor) {
	applyFunctions([]tensor.Tensor{dst}, []tensor.Tensor{src}, []*functionOp{o})
}

func (o *functionOp) Err() error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.err
}

func (o *functionOp) function() *functionOp { return o }

// A strengthOp is a functionOp whose parameter is its strength.
type strengthOp struct{ functionOp }

func (o *strengthOp) Parameter() float64 { return o.strength }

// applyFunctions applies Ops of one Function by one call. Its error is that of each Op.
func applyFunctions(dst, src []tensor.Tensor, ops []*functionOp) {
	var strengths []float64
	var seeds []uint64
	for i, o := range ops {
		dims(dst[i], src[i])
		strengths, seeds = append(strengths, o.strength), append(seeds, o.seed)
	}
	out, err := ops[0].call(src, strengths, seeds)
	for i, o := range ops {
		if err == nil {
			copy(dst[i].Data, out[i].Data)
			continue
		}
		o.mutex.Lock()
		o.err = err
		o.mutex.Unlock()
	}
}

// ApplyAll writes T(src[i]) to dst[i] for the Ops of draws of one Transform. A Function is called for
// all images at once. Other work is done by each, which calls apply for all i < n, perhaps in
// parallel. As after Apply, Err returns the error of an Op.
func ApplyAll(dst, src []tensor.Tensor, ops []Op, each func(n int, apply func(i int) error) error) error {
	if len(ops) == 0 {
		return nil
	}
	switch first := ops[0].(type) {
	case caller:
		functions := make([]*functionOp, len(ops))
		for i, op := range ops {
			functions[i] = op.(caller).function()
		}
		applyFunctions(dst, src, functions)
		return nil
	case sequenceOp:
		if first.calls() {
			return applySteps(dst, src, ops, each)
		}
	}
	return each(len(ops), func(i int) error {
		ops[i].Apply(dst[i], src[i])
		return nil
	})
}

// A caller is an Op of a Function.
type caller interface{ function() *functionOp }

// calls reports whether a step is of a Function.
func (o sequenceOp) calls() bool {
	return slices.ContainsFunc(o, func(op Op) bool {
		steps, _ := op.(sequenceOp)
		_, ok := op.(caller)
		return ok || steps.calls()
	})
}

// applySteps applies the Ops of draws of one Sequence, each step to all images.
func applySteps(dst, src []tensor.Tensor, ops []Op, each func(n int, apply func(i int) error) error) error {
	step := make([]Op, len(ops))
	last := len(ops[0].(sequenceOp)) - 1
	for k := range last + 1 {
		to := dst
		if k < last {
			to = make([]tensor.Tensor, len(ops))
			for i := range to {
				to[i] = tensor.New(src[i].Shape...)
			}
		}
		for i, op := range ops {
			step[i] = op.(sequenceOp)[k]
		}
		if err := ApplyAll(to, src, step, each); err != nil {
			return err
		}
		src = to
	}
	return nil
}
