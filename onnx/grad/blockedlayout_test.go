//go:build cgo

package grad_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/tensor"
)

// A randomConvNet builds a random network of convolutions, activations and pools. The methods of
// generator draw random numbers, and operands: inputs of the graph with their values.
type randomConvNet struct {
	*generator
	b *onnx.Builder
	// An input that is 1; if not empty, weights are multiplied by it, so that they are not
	// constants.
	one   onnx.Value
	wires []graphTensor // all tensors so far, n x c x h x w; the next operator reads some of them
}

// weights returns normal random numbers with the standard deviation scale.
func (d *randomConvNet) weights(scale float64, shape ...int) onnx.Value {
	w := tensor.New(shape...)
	for i := range w.Data {
		w.Data[i] = float32(scale * d.NormFloat64())
	}
	v := d.b.Const("", w)
	if d.one != "" {
		v = d.b.Mul(v, d.one)
	}
	return v
}

// vector returns n uniform random numbers from low to high.
func (d *randomConvNet) vector(low, high float64, n int) onnx.Value {
	w := d.uniform(low, high, n)
	return d.b.Const("", tensor.Tensor{Shape: w.shape, Data: w.floats})
}

// conv adds a convolution to out channels, sometimes in groups, often with a normalisation after
// it.
func (d *randomConvNet) conv(x graphTensor, out, stride int) graphTensor {
	in, kernel, group := x.shape[1], []int{1, 3}[d.IntN(2)], 1
	switch {
	case in == out && d.IntN(4) == 0:
		group = in
	case in%16 == 0 && out%16 == 0 && d.IntN(4) == 0:
		group = 2
	}
	w := d.weights(1.4/math.Sqrt(float64(in/group*kernel*kernel)), out, in/group, kernel, kernel)
	bias := onnx.Value("")
	if d.coin() {
		bias = d.vector(-0.5, 0.5, out)
	}
	pad := kernel / 2
	v := d.b.Conv(x.v, w, bias, onnx.Attrs{"group": group, "strides": []int{stride, stride}, "pads": []int{pad, pad, pad, pad}})
	if d.coin() {
		v = d.b.Op("BatchNormalization", nil, v, d.vector(0.8, 1.2, out), d.vector(-0.5, 0.5, out), d.vector(-0.5, 0.5, out), d.vector(0.5, 1.5, out))
	}
	shape := slices.Clone(x.shape)
	shape[1] = out
	shape[2], shape[3] = (shape[2]+stride-1)/stride, (shape[3]+stride-1)/stride
	return graphTensor{v, shape}
}

func (d *randomConvNet) activation(x graphTensor) graphTensor {
	switch d.IntN(8) {
	case 0:
		return x
	case 1:
		return graphTensor{d.b.Op("HardSwish", nil, x.v), x.shape}
	case 2:
		return graphTensor{d.b.Op("Sigmoid", nil, x.v), x.shape}
	case 3:
		return graphTensor{d.b.Op("Clip", nil, x.v, d.b.Scalar(0), d.b.Scalar(6)), x.shape}
	}
	return graphTensor{d.b.Op("Relu", nil, x.v), x.shape}
}

// grow adds a tensor computed from earlier ones, most often from the last.
func (d *randomConvNet) grow() {
	x := d.wires[len(d.wires)-1]
	if d.IntN(3) == 0 {
		x = d.wires[d.IntN(len(d.wires))]
	}
	channels := []int{8, 16, 16, 24, 32, 48}[d.IntN(6)]
	sameShape := slices.IndexFunc(d.wires, func(w graphTensor) bool { return w.v != x.v && slices.Equal(w.shape, x.shape) })
	sameSize := slices.IndexFunc(d.wires, func(w graphTensor) bool { return w.v != x.v && slices.Equal(w.shape[2:], x.shape[2:]) })
	y := x
	switch k := d.IntN(12); {
	case k < 2 && sameShape >= 0: // a sum, as at the end of a residual block
		y.v = d.b.Add(x.v, d.wires[sameShape].v)
		y = d.activation(y)
	case k == 2 && sameSize >= 0 && x.shape[1] < 100:
		y.shape = slices.Clone(x.shape)
		y.shape[1] += d.wires[sameSize].shape[1]
		y.v = d.b.Concat(1, x.v, d.wires[sameSize].v)
	case k == 3: // squeeze and excitation: a factor for each channel
		pooled := graphTensor{d.b.Op("GlobalAveragePool", nil, x.v), []int{x.shape[0], x.shape[1], 1, 1}}
		y.v = d.b.Mul(x.v, d.b.Sigmoid(d.conv(pooled, x.shape[1], 1).v))
	case k == 4 && x.shape[2] > 3:
		op := []string{"MaxPool", "AveragePool"}[d.IntN(2)]
		y.shape = []int{x.shape[0], x.shape[1], (x.shape[2] + 1) / 2, (x.shape[3] + 1) / 2}
		y.v = d.b.Op(op, onnx.Attrs{"kernel_shape": []int{3, 3}, "strides": []int{2, 2}, "pads": []int{1, 1, 1, 1}}, x.v)
	case k == 5: // a residual block
		inner := d.activation(d.conv(x, channels, 1))
		y = d.activation(graphTensor{d.b.Add(d.conv(inner, x.shape[1], 1).v, x.v), x.shape})
	case k == 6: // a residual block with strides and a convolution in the shortcut
		inner := d.activation(d.conv(x, channels, 2))
		y = d.conv(inner, channels, 1)
		y = d.activation(graphTensor{d.b.Add(y.v, d.conv(x, channels, 2).v), y.shape})
	case k == 7:
		y = d.activation(x)
	case k == 8: // minus the mean over the channels, whose gradient has a channel axis of size 1
		y = d.activation(graphTensor{d.b.Sub(x.v, d.b.ReduceMean(x.v, true, 1)), x.shape})
	default:
		y = d.activation(d.conv(x, channels, 1+d.IntN(4)/3)) // stride 2 once in four times
	}
	d.wires = append(d.wires, y)
}

// randomGradient builds random network number i, and the gradient by its input x of a weighted sum
// of its last three tensors, in operator set 16. It returns the values of the inputs too. Unless
// constant is set, the weights are computed when the graph runs.
func randomGradient(t *testing.T, i int, constant bool) (*onnx.Model, map[string]operand) {
	t.Helper()
	d := &randomConvNet{generator: &generator{Rand: seed.Rand(17, "blocks", i), opset: 16, trial: i}, b: onnx.NewBuilder(16)}
	shape := []int{2, []int{3, 16, 32}[d.IntN(3)], d.between(5, 12), d.between(5, 12)}
	feed := map[string]operand{"x": d.smooth(shape...), "one": {shape: []int{1}, floats: []float32{1}}}
	d.wires = []graphTensor{{d.b.Input("x", onnx.Float, shape...), shape}}
	if !constant {
		d.one = d.b.Input("one", onnx.Float, 1)
	}
	for range 10 {
		d.grow()
	}
	var y onnx.Value
	for _, w := range d.wires[len(d.wires)-3:] {
		s := d.b.ReduceSum(d.b.Mul(w.v, d.weights(1, w.shape[1], 1, 1)), false)
		if y == "" {
			y = s
		} else {
			y = d.b.Add(y, s)
		}
	}
	dx, err := grad.Pullback(d.b, []onnx.Value{y}, []onnx.Value{""}, "x")
	if err != nil {
		t.Fatal(err)
	}
	addOutputWithShape(d.b, "dx", dx[0])
	return build(t, d.b), feed
}

// ONNX Runtime computes convolutions with constant weights in a blocked layout of the feature maps
// (NCHWc, channels in blocks), and those with computed weights without it. The gradients must be
// equal. An activation within rounding error of a point where its function has no derivative may
// differ, so the error is relative to the norm of the gradient. trials returns 3, or what
// NOETHER_TRIALS sets.
func TestBlockedLayout(t *testing.T) {
	t.Parallel()
	for i := range 8 * trials() {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			m, feed := randomGradient(t, i, true)
			got := compile(t, m).run(t, feed)[0]
			m, feed = randomGradient(t, i, false)
			checkRelativeError(t, got, compile(t, m).run(t, feed)[0])
		})
	}
}

// checkRelativeError checks that the norm of the error is less than 2 % of the norm of the
// gradient.
func checkRelativeError(t *testing.T, got, want tensor.Tensor) {
	t.Helper()
	if !slices.Equal(got.Shape, want.Shape) {
		t.Fatalf("the gradient has shape %v, want %v", got.Shape, want.Shape)
	}
	var off, size float64
	for k, v := range want.Data {
		off += math.Pow(float64(got.Data[k])-float64(v), 2)
		size += float64(v) * float64(v)
	}
	if e := math.Sqrt(off / size); !(e < 0.02) {
		t.Errorf("the gradient has a relative error of %.2g; its norm is %g", e, math.Sqrt(size))
	}
}

// Random networks have the same gradient with and without the operators of package accel, which are
// written in C and replace slower ones of ONNX Runtime on the CPU.
func TestAccelerated(t *testing.T) {
	t.Parallel()
	for i := range 8 * trials() {
		for _, constant := range []bool{true, false} {
			m, feed := randomGradient(t, i, constant)
			got := compile(t, m).run(t, feed)[0]
			checkRelativeError(t, got, compileWith(t, m, ort.Options{Threads: 1, NoAcceleration: true}).run(t, feed)[0])
		}
	}
}
