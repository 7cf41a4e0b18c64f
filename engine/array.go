package engine

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/noether-ml/noether/tensor"
)

// A Type is the element type of an Array. Networks may have inputs and outputs of other types,
// which have no Array.
type Type string

// The types of Arrays.
const (
	Float  Type = "float" // float32
	Double Type = "double"
	Int8   Type = "int8"
	Int32  Type = "int32"
	Int64  Type = "int64"
	Uint8  Type = "uint8"
	Bool   Type = "bool"
)

// An Array is a tensor in memory, its last axis varying fastest.
type Array struct {
	Shape []int
	Data  any       // a slice of float32, float64, int8, int32, int64, uint8 or bool
	Bound io.Closer // what an engine holds for the memory; nil: nothing
}

var newElements = map[Type]func(n int) any{
	Float: newSlice[float32], Double: newSlice[float64], Int8: newSlice[int8], Int32: newSlice[int32],
	Int64: newSlice[int64], Uint8: newSlice[uint8], Bool: newSlice[bool],
}

func newSlice[T any](n int) any { return make([]T, n) }

// NewArray returns an array of zeros, or nil if Arrays have no such type.
func NewArray(t Type, shape ...int) *Array {
	elements := newElements[t]
	if elements == nil {
		return nil
	}
	return &Array{Shape: shape, Data: elements(tensor.Size(shape))}
}

// ArrayOf returns an array that shares the elements of a tensor.
func ArrayOf(t tensor.Tensor) *Array { return &Array{Shape: t.Shape, Data: t.Data} }

// Tensor returns an array of float32 as a tensor that shares its elements.
func (a *Array) Tensor() tensor.Tensor {
	return tensor.Tensor{Shape: a.Shape, Data: a.Data.([]float32)}
}

// Upload copies the elements to the device, if Placer.Place has given the array memory there. Call
// it after a change of the elements.
func (a *Array) Upload() error {
	if b, ok := a.Bound.(interface{ Upload() error }); ok {
		return b.Upload()
	}
	return nil
}

// Download copies what runs have written on the device to the elements. Call it before they are
// read.
func (a *Array) Download() error {
	if b, ok := a.Bound.(interface{ Download() error }); ok {
		return b.Download()
	}
	return nil
}

// Close frees what an engine holds for the array. The elements stay valid.
func (a *Array) Close() error {
	if a == nil || a.Bound == nil {
		return nil
	}
	bound := a.Bound
	a.Bound = nil
	return bound.Close()
}

// Compute runs a session that has one input and one output, of float32. The engine allocates the
// output.
func Compute(ctx context.Context, s Session, x tensor.Tensor) (tensor.Tensor, error) {
	in, out := ArrayOf(x), &Array{}
	if err := s.Bind(in); err != nil {
		return tensor.Tensor{}, err
	}
	defer in.Close()
	defer out.Close()
	if err := s.Run(ctx, Batch{Inputs: []*Array{in}, Outputs: []*Array{out}}); err != nil {
		return tensor.Tensor{}, err
	}
	y := out.Tensor()
	return tensor.Tensor{Shape: slices.Clone(y.Shape), Data: slices.Clone(y.Data)}, nil
}

// A Port describes an input or an output of a network.
type Port struct {
	Name  string
	Type  Type
	Shape []Dim // with the batch; nil: not known
}

// A Dim is one dimension of a Port.
type Dim struct {
	Size   int    // -1: free
	Symbol string // name of a free dimension, for instance "batch"; "": none
}

// Sizes returns the shape, with -1 for free dimensions; nil if there is no shape.
func (p Port) Sizes() []int {
	if p.Shape == nil {
		return nil
	}
	sizes := make([]int, len(p.Shape))
	for i, d := range p.Shape {
		sizes[i] = d.Size
	}
	return sizes
}

// String returns the name, type and shape: "x float[batch 3 32 32]".
func (p Port) String() string {
	if p.Shape == nil {
		return fmt.Sprintf("%s %s", p.Name, p.Type)
	}
	dims := make([]string, len(p.Shape))
	for i, d := range p.Shape {
		switch {
		case d.Size >= 0:
			dims[i] = fmt.Sprint(d.Size)
		case d.Symbol != "":
			dims[i] = d.Symbol
		default:
			dims[i] = "?"
		}
	}
	return fmt.Sprintf("%s %s[%s]", p.Name, p.Type, strings.Join(dims, " "))
}
