package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/study/spec"
)

// A gradientModel describes a model that grad has written.
type gradientModel struct {
	Path      string            `json:"path"`
	Of        string            `json:"of"`
	Cotangent string            `json:"cotangent,omitempty"` // empty if all weights are 1
	Gradients map[string]string `json:"gradients"`           // names of outputs, by tensor
	By        []string          `json:"-"`                   // the keys of Gradients, in the order of the outputs
	Nodes     int               `json:"nodes"`
	Added     int               `json:"added"` // nodes added to the model
	Inputs    []port            `json:"inputs"`
	Outputs   []port            `json:"outputs"`
}

const gradLong = `Differentiates a model: writes an ONNX model that computes the outputs of MODEL and, as further outputs,
the gradients of a tensor by inputs, weights or intermediate tensors. It runs in any ONNX runtime.

Unless the tensor has one element, the new model has one more input, the cotangent: the derivative of
a loss by each element of the tensor. With --sum it is 1 for all elements and not an input.`

func gradCommand() *cobra.Command {
	var out string
	var o grad.Options
	var sum, asJSON bool
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
			path, err := spec.ModelFile(c.Context(), args[0], note)
			if err != nil {
				return err
			}
			written, err := differentiate(path, out, o, sum)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(written)
			}
			return printGradients(os.Stdout, written)
		},
	}
	f := c.Flags()
	f.StringVarP(&out, "output", "o", "", "output file")
	f.StringVar(&o.Of, "of", "", "the tensor to differentiate (default: the model's only output)")
	f.StringSliceVar(&o.By, "by", nil, "tensors to differentiate by: inputs, weights, intermediate tensors (default: the model's only input)")
	f.StringVar(&o.Cotangent, "cotangent", "", `a new input, or a tensor of the model, that weights the elements (default: a new input "cotangent/TENSOR")`)
	f.BoolVar(&sum, "sum", false, "differentiate the sum of the elements")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// differentiate writes the model with gradients to out, and describes it.
func differentiate(path, out string, o grad.Options, sum bool) (*gradientModel, error) {
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
	if o.Cotangent == "" && !sum && !hasOneElement(m, o.Of) {
		o.Cotangent = "cotangent/" + o.Of
	}
	o.Names = outputNames(m, o)
	for _, by := range o.By {
		if !dependsOn(m, o.Of, by) {
			note(fmt.Sprintf("%s does not depend on %s: that gradient is zero", o.Of, by))
		}
	}
	g, err := grad.Add(m, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	raw, err := g.Bytes()
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Write(out, raw); err != nil {
		return nil, fmt.Errorf("writing the model: %w", err)
	}
	written := &gradientModel{
		Path: out, Of: o.Of, Cotangent: o.Cotangent, Gradients: map[string]string{}, Nodes: len(g.Nodes()),
		By: o.By, Added: len(g.Nodes()) - len(m.Nodes()), Inputs: ports(g.Inputs()), Outputs: ports(g.Outputs()),
	}
	for _, by := range o.By {
		written.Gradients[by] = o.Name(by)
	}
	return written, nil
}

// outputNames returns names for gradients whose default name is in use, as in a model that already
// computes gradients.
func outputNames(m *onnx.Model, o grad.Options) map[string]string {
	names := map[string]string{}
	for _, by := range o.By {
		if infer.Analyze(m).Has(o.Name(by)) {
			names[by] = "grad/" + o.Of + "/" + by
		}
	}
	return names
}

// dependsOn reports whether a tensor is computed from another one, or is the same. It is true for
// tensors that the model lacks.
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

// checkOutputPath returns an error if out is the model itself or a folder, or if a model in out
// could not find the external files that hold its weights.
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

// hasOneElement reports whether a tensor is known to have one element.
func hasOneElement(m *onnx.Model, name string) bool {
	shape := infer.Analyze(m).Shape(name)
	for _, d := range shape {
		if d != 1 {
			return false
		}
	}
	return shape != nil
}

func printGradients(w io.Writer, m *gradientModel) error {
	fmt.Fprintf(w, "wrote %s: %s, %d of them for gradients of %s\n\n", m.Path, plural.Of(m.Nodes, "node"), m.Added, m.Of)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	names := map[string]string{}
	for by, name := range m.Gradients {
		names[name] = "gradient with respect to " + by
	}
	for _, p := range m.Inputs {
		what := ""
		if p.Name == m.Cotangent {
			what = "weights the elements of " + m.Of
		}
		fmt.Fprintf(t, "input\t%s\t%s\t%s\t%s\t\n", p.Name, p.Type, p.Shape, what)
	}
	for _, p := range m.Outputs {
		fmt.Fprintf(t, "output\t%s\t%s\t%s\t%s\t\n", p.Name, p.Type, p.Shape, names[p.Name])
	}
	return t.Flush()
}
