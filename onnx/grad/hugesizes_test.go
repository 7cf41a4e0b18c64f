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

// A model may declare huge sizes. Adding its gradients, or the error, takes at most 64 MiB. c.draw
// makes a random test case of the operator c.op: attributes and operands, its inputs with their
// values. trials returns 3, or what NOETHER_TRIALS sets.
func TestHugeSizesUseLittleMemory(t *testing.T) {
	const huge = 1 << 40
	for _, c := range cases {
		for i := range 2 * trials() {
			opset := c.opsets[i%len(c.opsets)]
			g := &generator{Rand: seed.Rand(14, c.op, i), opset: opset, trial: i}
			tc := c.draw(g)
			shape := tc.operands[0].shape
			if tc.operands[0].ints != nil || len(shape) == 0 {
				continue
			}
			for k := range shape { // the graph never runs, so the operand needs no elements
				if k > 0 || g.coin() {
					shape[k] *= huge
				}
			}
			for _, v := range tc.attrs { // such as pads or strides
				if list, ok := v.([]int); ok && len(list) > 0 && i%3 == 2 {
					list[g.IntN(len(list))] = 1 << 30
				}
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := tc.differentiate(c.op, opset)
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
				t.Errorf("%s, opset %d: %d MiB are allocated (error %v): %v", c.op, opset, used>>20, err, tc)
			}
		}
	}
}

// differentiate adds the gradient with respect to the first operand, without running the graph. The
// other operands are constants. All sizes are declared, as in every plainForm.
func (tc testCase) differentiate(op string, opset int) (err error) {
	f := tc.plainForm(opset)
	for i := range f.constants {
		f.constants[i] = i > 0
	}
	b := onnx.NewBuilder(opset)
	in, out := tc.node(b, op, f)
	if b.Err() != nil {
		return b.Err()
	}
	_, err = grad.Of(b, out[tc.lossOutputs()[0]], "", in[0])
	if err == nil {
		err = b.Err()
	}
	if err != nil {
		return fmt.Errorf("adding gradients: %w", err)
	}
	return nil
}
