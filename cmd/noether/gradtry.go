package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/steady"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/tensor"
)

// nudges is how many inputs that differ by rounding gradients are tried at.
const nudges = 16

// A gradTrial is at what, and against what, gradients are tried.
type gradTrial struct {
	at, against []string // NAME=FILE, or FILE where there is one that it can be
}

func (t gradTrial) check() error {
	if len(t.at) == 0 && len(t.against) > 0 {
		return errors.New("--against wants an input to compute the gradients at: --try")
	}
	return nil
}

// run computes the gradients of a written model at the arrays given, and how rounding moves them.
func (t gradTrial) run(ctx context.Context, engine *engineFlags, g *onnx.Model, written *gradientModel) error {
	by := written.By
	o, err := engine.open()
	if err != nil {
		return err
	}
	s, err := o.Runtime.NewSession(g, ort.Options{Threads: o.Threads, Device: o.Device})
	if err != nil {
		return err
	}
	defer s.Close()
	p := gradProgram{rt: o.Runtime, session: s, gradients: len(by), outputs: g.Outputs()}
	var sole string
	for _, in := range g.Inputs() {
		p.types = append(p.types, in.Type)
		if in.Name != written.Cotangent {
			sole = in.Name
		}
	}
	if len(g.Inputs()) > 2 || len(g.Inputs()) == 2 && written.Cotangent == "" {
		sole = ""
	}
	inputs, err := readNamed(ctx, "--try", t.at, sole, s.Inputs())
	if err != nil {
		return err
	}
	float := make([]bool, len(inputs))
	for i, x := range inputs {
		name := s.Inputs()[i]
		if x.Shape == nil {
			return fmt.Errorf("the input %q has no array: --try %s=FILE", name, name)
		}
		if shape := g.Inputs()[i].Shape; shape != nil && len(shape) == 0 && x.Len() == 1 {
			inputs[i].Shape = []int{} // files hold arrays
		}
		float[i] = name != written.Cotangent && slices.Contains([]onnx.Type{onnx.Float, onnx.Double}, p.types[i])
	}
	sole = ""
	if len(by) == 1 {
		sole = by[0]
	}
	expected, err := readNamed(ctx, "--against", t.against, sole, by)
	if err != nil {
		return err
	}
	reports, err := steady.Try(ctx, p.run, inputs, float, expected, nudges, 1)
	if err != nil {
		return fmt.Errorf("trying the gradients: %w", err)
	}
	written.Tried = map[string]steady.Report{}
	for i, r := range reports {
		written.Tried[by[i]] = r
	}
	return nil
}

// readNamed reads arrays given as NAME=FILE, or as FILE for the sole name that there is, in the
// order of the names. One that is not given is the zero tensor.
func readNamed(ctx context.Context, flag string, given []string, sole string, names []string) ([]tensor.Tensor, error) {
	out := make([]tensor.Tensor, len(names))
	for _, arg := range given {
		name, file, ok := strings.Cut(arg, "=")
		if !ok {
			name, file = sole, arg
		}
		i := slices.Index(names, name)
		switch {
		case name == "":
			return nil, fmt.Errorf("%s %s: say NAME=FILE, NAME being one of %s", flag, arg, strings.Join(names, ", "))
		case i < 0:
			return nil, fmt.Errorf("%s %s: there is no %q; there are %s", flag, arg, name, strings.Join(names, ", "))
		case out[i].Shape != nil:
			return nil, fmt.Errorf("%s %s: %s is given twice", flag, arg, name)
		}
		a := parseArrayName(file)
		var err error
		if out[i], err = dataset.ReadArray(ctx, a.path, a.key); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// A gradProgram is a session whose last outputs are gradients.
type gradProgram struct {
	rt      *ort.Runtime
	session *ort.Session
	types   []onnx.Type // of the inputs
	outputs []onnx.Port

	gradients int // how many of the outputs, the last ones
}

// run is a steady.Gradient.
func (p gradProgram) run(ctx context.Context, inputs []tensor.Tensor) ([]tensor.Tensor, error) {
	in, out := make([]*ort.Value, len(inputs)), make([]*ort.Value, len(p.session.Outputs()))
	defer func() {
		for _, v := range slices.Concat(in, out) {
			v.Close()
		}
	}()
	for i, x := range inputs {
		var err error
		if in[i], err = valueOf(p.rt, x, p.types[i]); err != nil {
			return nil, fmt.Errorf("input %q: %w", p.session.Inputs()[i], err)
		}
	}
	for i, port := range p.outputs {
		if port.Shape == nil || len(port.Shape) > 0 {
			continue // the engine makes it
		}
		var err error
		if out[i], err = p.rt.NewValue(port.Type); err != nil {
			return nil, err
		}
	}
	if err := p.session.Run(ctx, in, out); err != nil {
		return nil, err
	}
	var gradients []tensor.Tensor
	for _, v := range out[len(out)-p.gradients:] {
		g := tensor.New(v.Shape()...)
		switch data := v.Elements().(type) {
		case []float32:
			copy(g.Data, data)
		case []float64:
			for e, x := range data {
				g.Data[e] = float32(x)
			}
		default:
			return nil, fmt.Errorf("a gradient of type %v", v.Type())
		}
		gradients = append(gradients, g)
	}
	return gradients, nil
}

// valueOf is an array as a tensor of a type.
func valueOf(rt *ort.Runtime, x tensor.Tensor, t onnx.Type) (*ort.Value, error) {
	v, err := rt.NewValue(t, x.Shape...)
	if err != nil {
		return nil, err
	}
	switch data := v.Elements().(type) {
	case []float32:
		copy(data, x.Data)
	case []float64:
		convert(data, x.Data)
	case []int64:
		convert(data, x.Data)
	case []int32:
		convert(data, x.Data)
	case []bool:
		for i, e := range x.Data {
			data[i] = e != 0
		}
	default:
		v.Close()
		return nil, fmt.Errorf("arrays of type %v cannot be tried", t)
	}
	return v, nil
}

func convert[T float64 | int64 | int32](dst []T, src []float32) {
	for i, v := range src {
		dst[i] = T(v)
	}
}

// printTrials tells how rounding moves gradients.
func printTrials(w io.Writer, m *gradientModel) error {
	fmt.Fprintf(w, "\ntried at the arrays given and at %d that differ from them by rounding; changes are relative to the largest value\n\n", nudges)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "gradient by\tlargest value\tmoves by\tat most\telements that move\toff\tnearest\t\t")
	for _, name := range m.By {
		r := m.Tried[name]
		off, nearest := "", ""
		if r.Off != nil {
			off, nearest = short(*r.Off), short(*r.Nearest)
		}
		text, _ := r.Verdict()
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.2g %%\t%s\t%s\t%s\t\n", name, short(r.Largest), short(r.Median()), short(r.Most()), 100*r.Moved, off, nearest, text)
	}
	return t.Flush()
}

func short(v float64) string { return fmt.Sprintf("%.2g", v) }

// judge is the error of gradients that are not what was expected.
func (m *gradientModel) judge() error {
	for _, name := range m.By {
		r, ok := m.Tried[name]
		if !ok {
			continue
		}
		if text, wrong := r.Verdict(); wrong {
			return fmt.Errorf("the gradient by %s is %s", name, text)
		}
	}
	return nil
}
