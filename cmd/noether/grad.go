package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/internal/study/open"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/rewrite"
)

// A gradientModel describes a model that the command grad has written.
type gradientModel struct {
	Path      string            `json:"path"`
	Of        string            `json:"of"`
	Cotangent string            `json:"cotangent,omitempty"` // empty if all elements have weight 1
	Gradients map[string]string `json:"gradients,omitempty"` // names of outputs, by tensor
	Tangents  map[string]string `json:"tangents,omitempty"`  // with --jvp: names of inputs, by tensor
	JVP       string            `json:"jvp,omitempty"`       // with --jvp: name of the output
	By        []string          `json:"-"`                   // the tensors to differentiate by: the keys of Gradients or Tangents, in order
	Nodes     int               `json:"nodes"`
	Added     int               `json:"added"` // nodes added to the model
	Inputs    []port            `json:"inputs"`
	Outputs   []port            `json:"outputs"`
}

const gradLong = `Differentiates a model: writes an ONNX model that computes the outputs of MODEL and, as further outputs,
the gradients of a tensor by inputs, weights or intermediate tensors. It runs in any ONNX runtime.

Unless the tensor has one element, the new model has one more input, the cotangent: the derivative of
a loss by each element of the tensor. With --sum it is 1 for all elements and not an input.

With --jvp the further output is the derivative of the tensor along a direction, its Jacobian-vector
product. The direction is a new input, the tangent, for each tensor to differentiate by.`

func gradCommand(e *engineFlags) *cobra.Command {
	var out string
	var o grad.Options
	var sum, jvp, asJSON bool
	c := &cobra.Command{
		Use:   "grad MODEL",
		Short: "Write a model that also computes its gradients",
		Long:  gradLong,
		Example: "  noether grad resnet18.onnx -o resnet18-grad.onnx\n" +
			"  noether grad model.onnx -o out.onnx --of loss --by x,conv1.weight",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if out == "" {
				return usagef(c, "the output file is missing: set it with -o")
			}
			if sum && o.Cotangent != "" {
				return usagef(c, "--sum and --cotangent exclude each other")
			}
			if jvp && (sum || o.Cotangent != "") {
				return usagef(c, "--jvp has no cotangent: leave out --sum and --cotangent")
			}
			path, err := open.ModelFile(c.Context(), args[0], note)
			if err != nil {
				return err
			}
			written, err := within(e.timeout, path, func() (*gradientModel, error) { return differentiate(path, out, o, sum, jvp) })
			if err != nil {
				return err
			}
			return show(asJSON, written, func() error { return printGradients(stdout, written) })
		},
	}
	f := c.Flags()
	f.StringVarP(&out, "out", "o", "", "output file")
	f.StringVar(&o.Of, "of", "", "the tensor to differentiate (default: the model's only output)")
	f.StringSliceVar(&o.By, "by", nil, "tensors to differentiate by: inputs, weights, intermediate tensors (default: the model's only input)")
	f.StringVar(&o.Cotangent, "cotangent", "", `a new input, or a tensor of the model, that weights the elements (default: a new input "cotangent/TENSOR")`)
	f.BoolVar(&sum, "sum", false, "differentiate the sum of the elements")
	f.BoolVar(&jvp, "jvp", false, `add the derivative along a direction, in new inputs "tangent/TENSOR", instead of gradients`)
	addJSON(c, &asJSON)
	return c
}

// differentiate writes the model with gradients, or a Jacobian-vector product, to out. Weights of
// 16 bits become float32.
func differentiate(path, out string, o grad.Options, sum, jvp bool) (*gradientModel, error) {
	m, err := rewrite.ReadFloat32(path)
	if err != nil {
		return nil, err
	}
	if err := checkOutputPath(m, path, out); err != nil {
		return nil, err
	}
	if o, err = o.Defaults(m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, by := range o.By {
		if !dependsOn(m, o.Of, by) {
			note(fmt.Sprintf("%s does not depend on %s: that derivative is zero", o.Of, by))
		}
	}
	written := &gradientModel{Path: out, Of: o.Of, By: o.By}
	var g *onnx.Model
	if jvp {
		g, err = written.addJVP(m, o)
	} else {
		g, err = written.addGradients(m, o, sum)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := writeModel(out, g); err != nil {
		return nil, err
	}
	written.Nodes, written.Added = len(g.Nodes()), len(g.Nodes())-len(m.Nodes())
	written.Inputs, written.Outputs = ports(g.Inputs()), ports(g.Outputs())
	return written, nil
}

func writeModel(path string, m *onnx.Model) error {
	raw, err := m.Bytes()
	if err == nil {
		err = atomicfile.Write(path, raw)
	}
	if err != nil {
		return fmt.Errorf("writing the model: %w", err)
	}
	return nil
}

// addGradients returns the model with gradients, and sets their names in w.
func (w *gradientModel) addGradients(m *onnx.Model, o grad.Options, sum bool) (*onnx.Model, error) {
	if o.Cotangent == "" && !sum && !hasOneElement(m, o.Of) {
		o.Cotangent = "cotangent/" + o.Of
	}
	o.Names = outputNames(m, o)
	w.Cotangent, w.Gradients = o.Cotangent, map[string]string{}
	for _, by := range o.By {
		w.Gradients[by] = o.Name(by)
	}
	return grad.Add(m, o)
}

// addJVP returns the model with a Jacobian-vector product, and sets its names in w.
func (w *gradientModel) addJVP(m *onnx.Model, o grad.Options) (*onnx.Model, error) {
	w.JVP, w.Tangents = grad.JVPName(o.Of), map[string]string{}
	for _, by := range o.By {
		w.Tangents[by] = grad.TangentName(by)
	}
	return grad.AddJVP(m, o)
}

// outputNames returns names, by tensor, for gradients whose default name is in use.
func outputNames(m *onnx.Model, o grad.Options) map[string]string {
	names := map[string]string{}
	for _, by := range o.By {
		if infer.Analyze(m).Has(o.Name(by)) {
			names[by] = "grad/" + o.Of + "/" + by
		}
	}
	return names
}

// dependsOn reports whether of is computed from by, or is the same; true if the model lacks one.
func dependsOn(m *onnx.Model, of, by string) bool {
	reached := map[string]bool{by: true}
	for _, n := range m.Nodes() {
		if slices.ContainsFunc(onnx.Reads(n), func(name string) bool { return reached[name] }) {
			for _, out := range n.Output {
				reached[out] = true
			}
		}
	}
	return reached[of] || !infer.Analyze(m).Has(of) || !infer.Analyze(m).Has(by)
}

// checkOutputPath returns an error if out is the model or a folder, or if a model in out could not
// find the external files of its weights.
func checkOutputPath(m *onnx.Model, path, out string) error {
	from, err := os.Stat(path)
	if err != nil {
		return err
	}
	if to, err := os.Stat(out); err == nil && os.SameFile(from, to) {
		return fmt.Errorf("%s is the model itself: write to another file", out)
	} else if err == nil && to.IsDir() {
		return fmt.Errorf("%s is a folder: set a file", out)
	}
	if m.ExternalDir() == "" {
		return nil
	}
	weightsDir, err := os.Stat(m.ExternalDir())
	if err != nil {
		return err
	}
	if outDir, err := os.Stat(filepath.Dir(out)); err != nil || !os.SameFile(weightsDir, outDir) {
		return fmt.Errorf("%s keeps weights in external files (%s): write the new model to their folder, %s",
			path, strings.Join(m.ExternalFiles(), ", "), m.ExternalDir())
	}
	return nil
}

func hasOneElement(m *onnx.Model, name string) bool {
	shape := infer.Analyze(m).Shape(name)
	return shape != nil && !slices.ContainsFunc(shape, func(d int) bool { return d != 1 })
}

func printGradients(w io.Writer, m *gradientModel) error {
	what := "gradients"
	if m.JVP != "" {
		what = "the derivative"
	}
	fmt.Fprintf(w, "wrote %s: %s, %d of them for %s of %s\n\n", m.Path, plural.Of(m.Nodes, "node"), m.Added, what, m.Of)
	t := newTable(w)
	names := map[string]string{}
	for by, name := range m.Gradients {
		names[name] = "gradient with respect to " + by
	}
	for by, name := range m.Tangents {
		names[name] = "direction in " + by
	}
	if m.Cotangent != "" {
		names[m.Cotangent] = "weights the elements of " + m.Of
	}
	if m.JVP != "" {
		names[m.JVP] = "derivative of " + m.Of + " along the direction"
	}
	for _, p := range m.Inputs {
		t.printf("input\t%s\t%s\t%s\t%s\t\n", p.Name, p.Type, p.Shape, names[p.Name])
	}
	for _, p := range m.Outputs {
		t.printf("output\t%s\t%s\t%s\t%s\t\n", p.Name, p.Type, p.Shape, names[p.Name])
	}
	return t.Flush()
}
