// Package lie measures how far a layer departs from moving as the input does, for infinitely small
// transformations: the Lie derivative of Gruver, Finzi, Goldblum and Wilson 2023, "The Lie
// Derivative for Measuring Learned Equivariance".
//
// Let T_t be a family of transformations, such as rotations by t, which acts on images and on
// feature maps. The Lie derivative of a layer f is
//
//	L f(x) = d/dt T_-t f(T_t x) at t = 0 = J X x - X f(x),
//
// where J is the Jacobian of f at x and X is the generator of the family: the derivative of T_t by
// t at t = 0. X is 0 on vectors and, for changes of colour, on all layers. L f is 0 where the maps
// move as the input does. E is the mean over samples, and dim the number of values of a layer. Per
// layer,
//
//	lee           E |L f|^2 / dim, the paper's local equivariance error
//	relative      E |L f| / |f|
//	contribution  E |J_l L_l|^2 / dim of the output
//
// Here L_l is the Lie derivative of the part of the network that computes layer l from the image
// and the chosen layers before l, and J_l is the Jacobian of the output with respect to layer l.
// The vectors J_l L_l, and that of the part after all chosen layers, add up to the Lie derivative
// of the output (the paper's section 4.2 and Figure 4). The output is the class probabilities, if
// the model has class scores.
//
// All derivatives are Jacobian-vector products of the model's graph (package onnx/grad), or those
// that its server computes, not differences. X itself is a difference of neighbouring values, since
// maps are known at whole positions only: see Settings.Slopes.
//
// The measure is a procedure: it reads samples in several steps, and so cannot be computed from
// running sums.
package lie

import (
	"context"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/spelling"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// Settings configure the measure.
type Settings struct {
	Generators    []string `key:"generators" json:"generators" default:"[translate-x, translate-y, rotate, scale, shear-x]" doc:"families of transformations: translate-x, translate-y, rotate, scale, stretch-x, stretch-y, shear-x, shear-y, brightness, contrast, saturation"`
	Images        int      `key:"images" json:"images" default:"100" min:"1" doc:"largest number of images, taken in random order"`
	Contributions bool     `key:"contributions" json:"contributions" default:"true" doc:"also compute the contribution of each layer to the error of the output"`
	Slopes        string   `key:"slopes" json:"slopes" default:"central" enum:"central|circular|forward" doc:"differences that stand for the slopes of maps. central: half the difference of the neighbours on both sides, at the border the difference to the only neighbour; circular: half the difference, and the last position is a neighbour of the first; forward: the difference to the next position, with maps that reach from the centre of the first position to that of the last, as the paper's code"`
	Batch         int      `key:"batch" json:"batch" default:"8" min:"2" doc:"images in one run of the engine; images of one run are paired for the null"`
}

const (
	Central  = "central"
	Circular = "circular"
	Forward  = "forward"
)

// New returns the measure lie-derivative. The field Factor of a score is the name of the generator.
func New(s Settings) (procedure.Procedure, error) {
	m := &method{settings: s}
	var names []string
	known := map[string]transform.Generator{}
	for _, g := range transform.Generators() {
		known[g.Name] = g
		names = append(names, g.Name)
	}
	for i, name := range s.Generators {
		g, ok := known[name]
		switch {
		case !ok:
			return nil, fmt.Errorf("generators: unknown generator %q; known are %s", name, spelling.Nearest(name, names, 3))
		case slices.Contains(s.Generators[:i], name):
			return nil, fmt.Errorf("generators: %s is listed twice", name)
		}
		m.generators = append(m.generators, g)
	}
	switch {
	case len(s.Generators) == 0:
		return nil, fmt.Errorf("generators is empty: list at least one of %s", names)
	case s.Images < 1 || s.Batch < 2:
		return nil, fmt.Errorf("images is %d and batch %d: they must be at least 1 and 2", s.Images, s.Batch)
	case !slices.Contains([]string{Central, Circular, Forward}, s.Slopes):
		return nil, fmt.Errorf("unknown slopes %q: use central, circular or forward", s.Slopes)
	}
	return m, nil
}

type method struct {
	settings   Settings
	generators []transform.Generator // those that the settings name
}

func (*method) Name() string                   { return "lie-derivative" }
func (*method) Descriptor() measure.Descriptor { return Descriptor() }
func (*method) Version() int                   { return 2 }
func (m *method) Settings() any                { return m.settings }

func (m *method) Needs() procedure.Needs {
	return procedure.Needs{Layers: measure.PairSame, Samples: m.settings.Images}
}

func (m *method) Skip(j *procedure.Job) string {
	switch net := j.A.Model; {
	case net.TakesAudio():
		return "it takes audio, but the transformations are of images"
	case net.TakesArrays():
		return "it takes arrays, but the transformations are of images"
	case net.Graph() == nil && net.NoTangents() != "":
		return "it " + net.NoTangents()
	case net.Input().Type != engine.Float:
		return fmt.Sprintf("its input is of type %v; derivatives need float", net.Input().Type)
	case net.Graph() != nil && net.Opset() < minOpset:
		return fmt.Sprintf("it uses opset %d, but derivatives need %d or later: convert it with onnx.version_converter", net.Opset(), minOpset)
	case len(measured(j.A.Layers)) == 0:
		return "none of its layers has values whose positions are known"
	}
	return ""
}

// minOpset is the first operator set with Where, which package grad writes for some derivatives.
const minOpset = 9

// Work implements procedure.Procedure. A tangent costs about as much as a forward pass, and that of
// a layer's contribution half as much.
func (m *method) Work(j *procedure.Job) int64 {
	passes := int64(2)
	if m.settings.Contributions {
		passes += 1 + int64(len(measured(j.A.Layers))+1)/2
	}
	return int64(min(j.Data.Len(), m.settings.Images)) * int64(len(m.generators)) * passes
}

func (m *method) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	r, err := m.newRun(ctx, j)
	if err != nil {
		return nil, err
	}
	for ; r.done < len(m.generators); r.done++ {
		if err := r.measure(ctx); err != nil {
			return nil, err
		}
	}
	return r.scores(), nil
}

// measured returns feature maps, tokens on a grid, and vectors, by index.
func measured(layers []tensor.Layer) []int {
	var out []int
	for i, l := range layers {
		if _, ok := fieldOf(l); ok {
			out = append(out, i)
		}
	}
	return out
}
