package stitching

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

const (
	imagesName      = "images"
	activationsName = "activations"
	inputName       = "stitch input"
	scoresName      = "scores"
	weightName      = "stitch weight"
	biasName        = "stitch bias"
)

const maxWeights = 1 << 24

type incompatible string

func (e incompatible) Error() string { return string(e) }

// maps describes a layer as feature maps of one sample: channels at the positions of a grid.
type maps struct {
	channels int
	grid     []int // height and width, or length; none for a vector
	tokens   bool  // the positions are tokens (axes NTC)
	last     bool  // the channels are the last axis
}

// mapsOf returns false if the axes are not those of maps.
func mapsOf(l tensor.Layer) (maps, bool) {
	axes := string(l.Axes)
	c := strings.IndexByte(axes, 'C')
	if len(axes) != len(l.Shape)+1 || axes == "" || axes[0] != 'N' || strings.Count(axes, "C") != 1 || c != 1 && c != len(axes)-1 || strings.Contains(axes, "?") {
		return maps{}, false
	}
	m := maps{channels: l.Shape[c-1], last: c > 1, tokens: axes == "NTC"}
	m.grid = slices.Delete(slices.Clone(l.Shape), c-1, c)
	return m, len(m.grid) <= 2
}

// A stitchedNetwork is two models joined by a stitch, a linear map of p channels to q channels at
// each position.
type stitchedNetwork struct {
	*onnx.Model
	p, q      int
	positions int  // 1 for a linear map of all values
	last      bool // the channels of the second layer are its last axis
}

// network returns the stitched network with untrained weights: x -> a up to the layer from ->
// stitch -> b after the layer to -> logits. If a is no graph, the network begins with the activations
// of the layer from. Layers that do not fit are an incompatible error. b.Outputs nil: all. images: n
// x c x h x w in [0, 1]; scores: n x classes; stitch input: n x p x grid.
func (s Settings) network(a, b procedure.Subject, from, to tensor.Layer, r *rand.Rand) (*stitchedNetwork, error) {
	opset := max(a.Model.Opset(), b.Model.Opset())
	for _, m := range []procedure.Subject{a, b} {
		if m.Model.Graph() == nil {
			continue
		}
		if err := m.Model.Graph().CompatibleWith(opset); err != nil {
			return nil, fmt.Errorf("%s beside a model of opset %d: %w", m.Name, opset, err)
		}
	}
	g := onnx.NewBuilder(opset)
	const n = 1 // constant inputs of a model are those of one image, and are broadcast to the batch
	var z onnx.Value
	if a.Model.Graph() == nil {
		z = g.Input(activationsName, onnx.Float, append([]int{-1}, from.Shape...)...)
	} else {
		images := g.Input(imagesName, onnx.Float, append([]int{-1}, a.Model.ImageShape()...)...)
		front, err := a.Model.Include(g.Scope("front"), images, n, from.Name)
		if err != nil {
			return nil, err
		}
		z = front[0]
	}
	net := &stitchedNetwork{}
	z, err := s.stitch(g, net, z, from, to, r)
	if err != nil {
		return nil, err
	}
	scores, err := b.Model.IncludeAfter(g.Scope("back"), to, z, n)
	if err != nil {
		return nil, err
	}
	scores = g.Reshape(g.Cast(scores, onnx.Float), -1, b.Model.Classes())
	if b.Outputs != nil {
		scores = g.Gather(scores, g.Ints(b.Outputs...), 1)
	}
	if b.Model.Scores() == "probabilities" {
		scores = g.Log(g.Op("Max", nil, scores, g.Scalar(1e-30))) // finite for a probability of 0 too
	}
	g.Output(scoresName, scores)
	net.Model, err = g.Model()
	return net, err
}

// stitch adds a map of the channels at each position if both are feature maps, or else of all
// values.
func (s Settings) stitch(g *onnx.Builder, net *stitchedNetwork, z onnx.Value, from, to tensor.Layer, r *rand.Rand) (onnx.Value, error) {
	a, isMapA := mapsOf(from)
	b, isMapB := mapsOf(to)
	if !isMapA || !isMapB || len(a.grid) != len(b.grid) || len(a.grid) == 0 {
		net.p, net.q, net.positions = tensor.Size(from.Shape), tensor.Size(to.Shape), 1
		w, bias, err := s.weights(g, net, nil, r) // nil: without the axes of a kernel
		if err != nil {
			return "", err
		}
		z = g.Flatten(z, 1)
		g.Output(inputName, z)
		y := g.Gemm(z, w, bias, onnx.Attrs{"transB": 1})
		return g.Reshape(y, append([]int{-1}, to.Shape...)...), nil
	}
	if !slices.Equal(a.grid, b.grid) && (a.tokens || b.tokens) {
		return "", incompatible(fmt.Sprintf("layer %q has %v positions and layer %q %v: tokens are not resized", from.Name, a.grid, to.Name, b.grid))
	}
	rank := 2 + len(a.grid)
	if a.last {
		z = g.Transpose(z, toFirst(rank)...)
	}
	z = resized(g, z, a.grid, b.grid)
	net.p, net.q, net.positions, net.last = a.channels, b.channels, tensor.Size(b.grid), b.last
	w, bias, err := s.weights(g, net, slices.Repeat([]int{1}, len(a.grid)), r)
	if err != nil {
		return "", err
	}
	g.Output(inputName, z)
	y := g.Conv(z, w, bias, nil)
	if b.last {
		y = g.Transpose(y, toLast(rank)...)
	}
	return y, nil
}

// toFirst returns the permutation that moves the last axis to the front, after that of the batch.
func toFirst(rank int) []int {
	perm := []int{0, rank - 1}
	for i := 1; i < rank-1; i++ {
		perm = append(perm, i)
	}
	return perm
}

// toLast returns the inverse of toFirst.
func toLast(rank int) []int {
	perm := []int{0}
	for i := 2; i < rank; i++ {
		perm = append(perm, i)
	}
	return append(perm, 1)
}

// maxFitted is the largest number of channels of both layers together for a fit by least squares.
const maxFitted = 4096

// weights adds q x p x kernel weights, random if Start is random, otherwise 1 from each channel to
// that of the same index and else 0; and a bias of q zeros.
func (s Settings) weights(g *onnx.Builder, net *stitchedNetwork, kernel []int, r *rand.Rand) (w, bias onnx.Value, err error) {
	switch {
	case net.p*net.q > maxWeights:
		err = incompatible(fmt.Sprintf("a linear map of %d to %d values has %d weights, and at most %d are possible: take two layers of feature maps, or smaller layers", net.p, net.q, net.p*net.q, maxWeights))
	case s.Start == identity && net.p != net.q:
		err = incompatible(fmt.Sprintf("the identity needs equal numbers of channels, not %d and %d: set start: least-squares", net.p, net.q))
	case s.Start == leastSquares && net.p+net.q > maxFitted:
		err = incompatible(fmt.Sprintf("least squares of %d and %d values takes too long (at most %d together are possible): take smaller layers, or set start: random", net.p, net.q, maxFitted))
	}
	if err != nil {
		return "", "", err
	}
	t := tensor.New(append([]int{net.q, net.p}, kernel...)...)
	for i := range net.q {
		for j := range net.p {
			switch {
			case s.Start == random:
				t.Data[i*net.p+j] = float32(r.NormFloat64() / math.Sqrt(float64(net.p)))
			case i == j:
				t.Data[i*net.p+j] = 1
			}
		}
	}
	return g.Const(weightName, t), g.Const(biasName, tensor.New(net.q)), nil
}

// resized interpolates n x c x grid linearly. A smaller grid gets weighted means, so that no
// position is skipped.
func resized(g *onnx.Builder, z onnx.Value, from, to []int) onnx.Value {
	last := len(from) - 1
	if from[last] != to[last] {
		z = g.MatMul(z, g.Transpose(g.Const("", interpolation(from[last], to[last])), 1, 0))
	}
	if last == 1 && from[0] != to[0] {
		z = g.MatMul(g.Const("", interpolation(from[0], to[0])), z)
	}
	return z
}

// interpolation returns the matrix, to x from, of linear interpolation between centres of equal
// parts of a line. Weights form a triangle, as in antialiased bilinear resizing.
func interpolation(from, to int) tensor.Tensor {
	m := tensor.New(to, from)
	scale := float64(from) / float64(to)
	width := max(scale, 1)
	for i := range to {
		centre := (float64(i)+0.5)*scale - 0.5
		row, sum := m.At(i).Data, 0.
		for j := range row {
			v := max(0, 1-math.Abs(float64(j)-centre)/width)
			row[j], sum = float32(v), sum+v
		}
		for j := range row {
			row[j] /= float32(sum)
		}
	}
	return m
}
