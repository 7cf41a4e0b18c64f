//go:build cgo

package grad_test

import (
	"github.com/noether-ml/noether/onnx"
)

// layerCases are random cases of convolutions, matrix products and recurrent layers. The numbers
// are versions of the ONNX operator set (opsets): 7, the oldest that is supported, or else the
// first with the operator, and those in which it changed. Each draw function returns a random node
// of that operator: attributes and operands, its inputs with their values.
//
// The methods of generator are in generator_test.go: coin is a random bool, between an integer in a
// range, dims a list of n of them, smooth and uniform an operand of a shape. trial is the index of
// the case. A size is free if the graph does not declare it.
var layerCases = []opCase{
	{"Conv", []int{7, 11, 22}, drawConv},
	{"ConvTranspose", []int{7, 11, 22}, drawConvTranspose},
	{"Gemm", []int{7, 9, 11, 13}, drawGemm},
	{"MatMul", []int{7, 9, 13}, drawMatMul},
	{"Einsum", []int{12}, drawEinsum},
	{"LSTM", []int{7, 14}, drawLSTM},
	{"GRU", []int{7, 14}, drawGRU},
	{"RNN", []int{7, 14}, drawRNN},
}

// window draws strides and, where the operator dilates, dilations of a convolution or pool. span is
// the size of the dilated kernel.
func (g *generator) window(kernel []int, dilates bool) (attrs onnx.Attrs, span []int) {
	n := len(kernel)
	attrs = onnx.Attrs{}
	span = append(span, kernel...)
	if g.coin() {
		attrs["strides"] = g.dims(n, 1, 3)
	}
	if dilates && g.IntN(3) == 0 {
		d := g.dims(n, 1, 2)
		attrs["dilations"] = d
		for i := range span {
			span[i] = (kernel[i]-1)*d[i] + 1
		}
	}
	return attrs, span
}

// stride returns the stride along spatial axis i.
func stride(attrs onnx.Attrs, i int) int {
	if strides, ok := attrs["strides"].([]int); ok {
		return strides[i]
	}
	return 1
}

func drawConv(g *generator) testCase {
	n := []int{2, 1, 2, 2, 3}[g.trial%5] // number of spatial axes
	kernel := g.dims(n, 1, 3)
	attrs, span := g.window(kernel, true)
	group, in, out := 1, g.between(1, 3), g.between(1, 3)
	switch g.IntN(3) {
	case 0: // depthwise
		group, in, out = in, 1, in*g.between(1, 2)
	case 1: // two groups
		group, out = 2, 2*out
	}
	if group > 1 || g.coin() {
		attrs["group"] = group
	}
	switch g.IntN(4) {
	case 0:
		attrs["auto_pad"] = []string{"SAME_UPPER", "SAME_LOWER", "VALID"}[g.IntN(3)]
	case 1, 2:
		attrs["pads"] = g.dims(2*n, 0, 2)
	}
	if g.coin() {
		attrs["kernel_shape"] = kernel
	}
	if attrs["auto_pad"] != nil && attrs["auto_pad"] != "VALID" {
		delete(attrs, "dilations") // with them ONNX Runtime pads differently from the standard
	}
	x := []int{g.between(1, 2), group * in}
	for i := range n {
		x = append(x, span[i]+g.between(0, 4))
	}
	tc := testCase{onlyBatchAndSpaceFree: true, attrs: attrs, operands: []operand{g.smooth(x...), g.smooth(append([]int{out, in}, kernel...)...)}}
	if g.coin() {
		tc.operands = append(tc.operands, g.smooth(out))
	}
	return tc
}

func drawConvTranspose(g *generator) testCase {
	n := []int{2, 1, 2, 2, 3}[g.trial%5] // number of spatial axes
	kernel := g.dims(n, 1, 3)
	attrs, span := g.window(kernel, true)
	group, in, out := g.between(1, 2), g.between(1, 2), g.between(1, 2)
	if group > 1 || g.coin() {
		attrs["group"] = group
	}
	x := append([]int{g.between(1, 2), group * in}, g.dims(n, 1, 4)...)
	switch g.IntN(4) {
	case 0:
		pads := make([]int, 2*n)
		for i := range n {
			unpadded := (x[2+i]-1)*stride(attrs, i) + span[i] // size of the output without pads
			pads[i] = g.IntN(min(3, unpadded))
			pads[n+i] = g.IntN(min(3, unpadded-pads[i]))
		}
		attrs["pads"] = pads
	case 1:
		shape := make([]int, n)
		for i := range n {
			shape[i] = (x[2+i]-1)*stride(attrs, i) + span[i] - g.IntN(min(2, span[i]))
		}
		attrs["output_shape"] = shape
		if g.coin() {
			attrs["auto_pad"] = []string{"SAME_UPPER", "SAME_LOWER"}[g.IntN(2)]
		}
	case 2:
		extra := make([]int, n)
		for i := range extra {
			extra[i] = g.IntN(stride(attrs, i))
		}
		attrs["output_padding"] = extra
	}
	tc := testCase{onlyBatchAndSpaceFree: true, attrs: attrs, operands: []operand{g.smooth(x...), g.smooth(append([]int{group * in, out}, kernel...)...)}}
	if g.coin() {
		tc.operands = append(tc.operands, g.smooth(group*out))
	}
	return tc
}

func drawGemm(g *generator) testCase {
	m, k, n := g.between(1, 4), g.between(1, 4), g.between(1, 4)
	a, b := []int{m, k}, []int{k, n}
	attrs := onnx.Attrs{}
	if g.coin() {
		attrs["transA"], a = 1, []int{k, m}
	}
	if g.coin() {
		attrs["transB"], b = 1, []int{n, k}
	}
	if g.coin() {
		attrs["alpha"] = 0.5
	}
	if g.coin() {
		attrs["beta"] = 1.5
	}
	tc := testCase{attrs: attrs, operands: []operand{g.smooth(a...), g.smooth(b...)}}
	if g.opset < 11 || g.IntN(3) > 0 {
		c := [][]int{{m, n}, {n}, {m, 1}, {1, n}, {1}, {}}[g.IntN(6)]
		tc.operands = append(tc.operands, g.smooth(c...))
	}
	return tc
}

func drawMatMul(g *generator) testCase {
	m, k, n := g.between(1, 4), g.between(1, 4), g.between(1, 4)
	h, w := g.between(2, 3), g.between(2, 3)
	pairs := [][2][]int{
		{{m, k}, {k, n}}, {{k}, {k}}, {{k}, {k, n}}, {{m, k}, {k}}, {{h, m, k}, {k, n}}, {{m, k}, {h, k, n}},
		{{h, w, m, k}, {h, w, k, n}}, {{h, 1, m, k}, {w, k, n}}, {{h, w, m, k}, {k}}, {{k}, {h, w, k, n}}, {{1, h, m, k}, {w, 1, k, n}},
	}
	p := pairs[(g.trial+3*g.opset)%len(pairs)] // each operator set starts at another pair
	return testCase{operands: []operand{g.smooth(p[0]...), g.smooth(p[1]...)}}
}

func drawEinsum(g *generator) testCase {
	i, j, k, b := g.between(1, 3), g.between(1, 3), g.between(1, 3), g.between(2, 3)
	equations := []struct {
		equation string
		shapes   [][]int
	}{
		{"ij,jk->ik", [][]int{{i, j}, {j, k}}},
		{"bij, bjk -> bik", [][]int{{b, i, j}, {b, j, k}}},
		{"ij->ji", [][]int{{i, j}}},
		{"ij->i", [][]int{{i, j}}},
		{"ij,ij->", [][]int{{i, j}, {i, j}}},
		{"i,j->ij", [][]int{{i}, {j}}},
		{"bhqd,bhkd->bhqk", [][]int{{b, 2, i, k}, {b, 2, j, k}}},
		{"...ij,...jk->...ik", [][]int{{b, i, j}, {b, j, k}}},
		{"ij,jk,kb->ib", [][]int{{i, j}, {j, k}, {k, b}}},
		{"ij,jk", [][]int{{i, j}, {j, k}}},
		{"bn,anm,bm->ba", [][]int{{2, i}, {3, i, j}, {2, j}}},
		{"ij,k->ik", [][]int{{i, j}, {k}}},
		{"...i,i->...", [][]int{{b, j, i}, {i}}},
		{"b...,...c->...bc", [][]int{{i, 2, j}, {1, j, k}}},
		{"i,...", [][]int{{i}, {j, k}}},
		{"ij,,k->jk", [][]int{{i, j}, {}, {k}}},
		{"...i,...j->...j", [][]int{{1, k, i}, {b, k, j}}},
		{"ii->i", [][]int{{b, b}}},
		{"jij,ki", [][]int{{b, i, b}, {k, i}}},
		{"k,jj->", [][]int{{k}, {b, b}}},
		{"iii,l->li", [][]int{{b, b, b}, {j}}},
		{"...ii,...ji->...j", [][]int{{k, b, b}, {1, j, b}}},
	}
	c := equations[(g.trial+g.opset)%len(equations)]
	tc := testCase{attrs: onnx.Attrs{"equation": c.equation}}
	for _, s := range c.shapes {
		tc.operands = append(tc.operands, g.smooth(s...))
	}
	return tc
}

// recurrent draws an LSTM, GRU or RNN with the given number of gates, and of states (h, and c of an
// LSTM). Its shapes are of t time steps, n samples, in inputs and h hidden units. The operands are
// those of ONNX: X, W, R, B, sequence_lens, initial_h, and for an LSTM initial_c and P.
func (g *generator) recurrent(gates, states int) testCase {
	t, n, in, h := g.between(1, 3), g.between(1, 2), g.between(1, 3), g.between(1, 3)
	direction := []string{"forward", "reverse", "bidirectional"}[g.trial%3]
	d := 1 // number of directions
	if direction == "bidirectional" {
		d = 2
	}
	small := func(shape ...int) operand { return g.uniform(-1, 1, shape...) }
	tc := testCase{
		attrs:          onnx.Attrs{"hidden_size": h, "direction": direction},
		outputs:        1 + states,
		operands:       []operand{small(t, n, in), small(d, gates*h, in), small(d, gates*h, h), {}, {}, {}, {}, {}},
		alwaysDeclared: func(operand, axis int) bool { return operand > 0 || axis == 0 },
	}
	if g.coin() {
		tc.operands[3] = small(d, 2*gates*h)
	}
	if g.IntN(3) == 0 {
		lengths := operand{shape: []int{n}, isInt32: true}
		for range n {
			lengths.ints = append(lengths.ints, int64(g.between(1, t)))
		}
		tc.operands[4] = lengths
	}
	for i := range states {
		if g.coin() {
			tc.operands[5+i] = small(d, n, h)
		}
	}
	if g.coin() {
		tc.loss = g.Perm(1 + states)[:1] // the loss reads one output: Y, or a final state
	}
	return tc
}

// activations sets the attribute activations at random, and the parameters of those activations
// that have some. perDirection is the number of activations for each direction.
func (g *generator) activations(tc testCase, perDirection int) {
	if g.coin() {
		return
	}
	smooth := []string{"Sigmoid", "Tanh", "Affine", "ScaledTanh", "Softplus", "Elu"}
	var names []string
	var alphas, betas []float32
	for range perDirection * tc.operands[1].shape[0] {
		name := smooth[g.IntN(len(smooth))]
		names = append(names, name)
		if name == "Affine" || name == "ScaledTanh" {
			betas = append(betas, 0.5+g.Float32())
		}
		if name == "Elu" {
			alphas = append(alphas, 1) // with any other value the derivative jumps at 0
		} else if name == "Affine" || name == "ScaledTanh" {
			alphas = append(alphas, 0.5+g.Float32())
		}
	}
	tc.attrs["activations"] = names
	if alphas != nil && g.coin() {
		tc.attrs["activation_alpha"] = alphas
	}
	if betas != nil && g.coin() {
		tc.attrs["activation_beta"] = betas
	}
}

func drawLSTM(g *generator) testCase {
	tc := g.recurrent(4, 2)
	if h := tc.attrs["hidden_size"].(int); g.coin() {
		tc.operands[7] = g.uniform(-1, 1, tc.operands[1].shape[0], 3*h)
	}
	g.activations(tc, 3)
	return tc
}

func drawGRU(g *generator) testCase {
	tc := g.recurrent(3, 1)
	tc.operands = tc.operands[:6]
	tc.attrs["linear_before_reset"] = g.IntN(2)
	g.activations(tc, 2)
	return tc
}

func drawRNN(g *generator) testCase {
	tc := g.recurrent(1, 1)
	tc.operands = tc.operands[:6]
	g.activations(tc, 1)
	return tc
}
