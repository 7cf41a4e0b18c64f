//go:build cgo

package grad_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
)

// What a file claims of sizes and lists makes nobody allocate it: gradients are added or refused in
// little memory.
func TestAbsurdSizes(t *testing.T) {
	const absurd = 1 << 40
	for _, c := range cases {
		for i := range 2 * trials() {
			opset := c.opsets[i%len(c.opsets)]
			g := &gen{Rand: seed.Rand(14, c.op, i), opset: opset, trial: i}
			tr := c.draw(g)
			shape := tr.operands[0].shape
			if tr.operands[0].ints != nil || len(shape) == 0 {
				continue
			}
			for k := range shape { // the operand's elements are not needed: nothing runs
				if k > 0 || g.coin() {
					shape[k] *= absurd
				}
			}
			for _, v := range tr.attrs {
				if list, ok := v.([]int); ok && len(list) > 0 && i%3 == 2 {
					list[g.IntN(len(list))] = 1 << 30
				}
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := tr.differentiate(c.op, opset)
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
				t.Errorf("%s, opset %d: %d MB are allocated (%v): %v", c.op, opset, used>>20, err, tr)
			}
		}
	}
}

// differentiate adds the gradient by the first operand to a graph that never runs.
func (tr trial) differentiate(op string, opset int) (err error) {
	f := tr.plain(opset)
	for i := range f.constants {
		f.constants[i] = i > 0
	}
	b := onnx.NewBuilder(opset)
	in, out := tr.node(b, op, f)
	if b.Err() != nil {
		return b.Err()
	}
	_, err = grad.Of(b, out[tr.read()[0]], "", in[0])
	if err == nil {
		err = b.Err()
	}
	if err != nil {
		return fmt.Errorf("adding gradients: %w", err)
	}
	return nil
}
