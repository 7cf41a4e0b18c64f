package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/blocks"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/open"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/rewrite"
)

type inspection struct {
	Path       string         `json:"path"`
	SHA256     string         `json:"sha256"`
	Opset      int            `json:"opset"`
	Parameters int64          `json:"parameters"`
	Half       string         `json:"half,omitempty"` // 16-bit type of the weights, if they have one
	Inputs     []port         `json:"inputs"`
	Outputs    []port         `json:"outputs"`
	Takes      string         `json:"takes,omitempty"`               // "images 3 x 32 x 32", "audio of 16000 samples", or "arrays" (other tensors)
	Classes    int            `json:"classes"`                       // 0: the model gives no class scores
	ClassNames []string       `json:"class_names,omitempty"`         // by output, if the metadata or a config.json name them
	Scores     string         `json:"scores,omitempty"`              // "logits", "probabilities" or "none"
	Basis      string         `json:"scores_basis,omitempty"`        // how Scores is known
	Output     string         `json:"scores_output,omitempty"`       // name of the output with the class scores
	Decoded    *decodedValues `json:"decoded,omitempty"`             // how dense outputs are decoded
	Config     string         `json:"preprocessor_config,omitempty"` // path of the file with the preprocessing
	Preprocess *imageValues   `json:"preprocess,omitempty"`          // preprocessing of images; nil for other inputs
	Suggested  any            `json:"suggested,omitempty"`           // preprocessing that init writes for the data of --data; nil if it is stated or there are no images
	Doubts     []string       `json:"doubts,omitempty"`              // about the scores, for instance that samples of a batch influence each other
	Layers     []layerEntry   `json:"layers"`
	Problem    string         `json:"problem,omitempty"` // why the model cannot be measured
}

// decodedValues tells how dense outputs are decoded.
type decodedValues struct {
	Kind     string   `json:"kind"`   // "class-map", "boxes", "keypoints" or "values", as in a study file
	Layout   string   `json:"layout"` // how the values lie in the outputs, for instance "yolov8"
	Outputs  []string `json:"outputs"`
	Shape    []int    `json:"shape"`             // of one sample: channels, height, width; boxes before suppression, values of each; or keypoints, 3
	Classes  int      `json:"classes,omitempty"` // 0: unknown
	Names    []string `json:"class_names,omitempty"`
	Most     int      `json:"most,omitempty"`     // largest number of boxes of an image
	Suppress float64  `json:"suppress,omitempty"` // intersection over union above which boxes are suppressed
}

// decoded describes the decoded output of a model, or returns nil.
func decoded(m *model.Model) *decodedValues {
	f, _ := m.Decoded()
	if f == nil {
		return nil
	}
	out := &decodedValues{Kind: string(f.Kind), Layout: f.Layout, Outputs: f.Outputs, Shape: f.Shape(), Classes: f.Classes, Names: f.Names, Most: min(f.Most, f.Candidates)}
	if f.Suppress < 1 { // no intersection over union is above 1, so from 1 on nothing is suppressed
		out.Suppress = f.Suppress
	}
	return out
}

// String describes the decoded output in a line.
func (d *decodedValues) String() string {
	text := fmt.Sprintf("{%s: %s} of %s, ", d.Kind, d.Layout, strings.Join(d.Outputs, ", "))
	switch d.Kind {
	case "boxes":
		text += fmt.Sprintf("at most %d boxes", d.Most)
		if d.Suppress > 0 {
			text += fmt.Sprintf(", suppressed at %g", d.Suppress)
		}
	case "keypoints":
		text += fmt.Sprintf("%d keypoints", d.Shape[0])
	default:
		text += sizes(d.Shape[1:])
	}
	if d.Classes > 0 {
		text += fmt.Sprintf(", %d classes%s", d.Classes, firstNames(d.Names))
	}
	return text
}

// imageValues is a preprocessing of images, with the keys of a study file.
type imageValues struct {
	Resize        int       `json:"resize,omitempty"`    // length of the short side, in pixels
	Crop          []int     `json:"crop,omitempty"`      // height and width, in pixels
	Letterbox     []int     `json:"letterbox,omitempty"` // height and width that the image is padded to
	Interpolation string    `json:"interpolation,omitempty"`
	Mean          []float32 `json:"mean,omitempty"`
	Std           []float32 `json:"std,omitempty"`
	Range         []float32 `json:"range,omitempty"` // values of black and white
	Order         string    `json:"order,omitempty"` // of the channels: "rgb" or "bgr"
}

// preprocessing reads preprocessor_config.json beside the model or, without one, its metadata.
func (in *inspection) preprocessing(path string) error {
	p, file, err := open.PreprocessFor("", path)
	if err != nil || file == "" {
		return err
	}
	in.Config = file
	if !p.Frame.ForImages() {
		return nil
	}
	in.Preprocess = &imageValues{Resize: p.Frame.Resize, Interpolation: p.Frame.Interpolation, Mean: p.Mean, Std: p.Std, Order: p.Order}
	switch size := []int{p.Frame.Height, p.Frame.Width}; {
	case p.Frame.Letterbox:
		in.Preprocess.Letterbox = size
	case p.Frame.Height > 0:
		in.Preprocess.Crop = size
	}
	if p.Range != [2]float32{} {
		in.Preprocess.Range = p.Range[:]
	}
	return nil
}

type port struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Shape string `json:"shape"`
}

type layerEntry struct {
	Name  string `json:"name"`
	Op    string `json:"op"`             // operator that computes it
	Node  string `json:"node,omitempty"` // name of the node of the graph
	Depth int    `json:"depth"`          // number of nodes on the longest path from the input
	Shape []int  `json:"shape"`          // of one sample; null where it is not known
	Axes  string `json:"axes"`           // such as NCHW, see the help of the command
	Role  string `json:"role,omitempty"` // of a layer that noether init writes into a new study file, such as "stage 1, block 1 of 3" of the network
}

func inspectCommand(e *engineFlags) *cobra.Command {
	var patterns []string
	var size, length int
	var data string
	var asJSON bool
	c := &cobra.Command{
		Use:   "inspect MODEL",
		Short: "List a model's inputs, outputs and layers",
		Long: `Lists a model's inputs, outputs and layers: every tensor that can be measured, with the operator
that produces it, its depth, the shape of one sample and its axes (N batch, C channel, H and W space,
T token or time). Names and operators can be used as layers in a study file.`,
		Example: "  noether inspect resnet18.onnx --layers op:Conv\n  noether inspect vit.onnx --layers 'penultimate,*attn*' --json\n  noether inspect hf://ORGANISATION/NAME",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if size < 0 || length < 0 {
				return usagef(c, "--size and --length must be above 0")
			}
			found, err := within(3*e.timeout, args[0], func() (*inspection, error) {
				return inspect(c.Context(), e, args[0], patterns, size, length, data)
			})
			if err != nil {
				return err
			}
			return show(asJSON, found, func() error { return printInspection(stdout, found) })
		},
	}
	c.Flags().StringVar(&data, "data", "", "also print the preprocessing that noether init would guess for these images")
	c.Flags().StringSliceVar(&patterns, "layers", []string{"all"}, "all, op:TYPE, a glob on tensor names, residual, penultimate, output")
	c.Flags().IntVar(&size, "size", 0, "side of the images, for a model of free size")
	c.Flags().IntVar(&length, "length", 0, "number of audio samples or of tokens, for a model that takes any length")
	addJSON(c, &asJSON)
	return c
}

// inspect opens a model as a study would. Problem says why a model cannot be measured; then layers
// have no shapes.
func inspect(ctx context.Context, engine *engineFlags, address string, patterns []string, size, length int, dataPath string) (*inspection, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // the model may take most of the memory
	path, err := open.ModelFile(ctx, address, note)
	if err != nil {
		return nil, err
	}
	var o study.Options
	var loading errgroup.Group // loads ONNX Runtime while the model is read
	loading.Go(func() (err error) {
		o, err = engine.openRuntime()
		return err
	})
	defer loading.Wait()
	graph, err := onnx.Read(path)
	if err != nil {
		return nil, err
	}
	go graph.SHA256() // beside the loading; model.Open waits for it and returns its error
	out := &inspection{Path: address, Opset: graph.Opset(), Parameters: graph.Parameters(),
		Inputs: ports(graph.Inputs()), Outputs: ports(graph.Outputs())}
	if half := rewrite.HalfPrecision(graph); half != onnx.Undefined {
		out.Half = half.String()
	}
	if graph, err = rewrite.ToFloat32(graph); err != nil {
		return nil, fmt.Errorf("reading model %s: %w", path, err)
	}
	graph = graph.WithModuleNames()
	layers, err := graph.Select(patterns...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := loading.Wait(); err != nil {
		return nil, err
	}
	roles := map[string]string{}
	// ReloadWeights frees the weights once the model is open.
	net, err := o.Runtime.NewNetwork(graph, ort.NetworkOptions{ReloadWeights: true, Threads: o.Threads, Device: o.Device})
	if err != nil {
		return nil, err
	}
	options := model.Options{Layers: patterns, Size: [2]int{size, size}, Samples: length}
	m, err := model.Open(ctx, net, options)
	if err != nil {
		// Arrays are the inputs of a model that takes neither images nor audio.
		arrays, arraysErr := model.ArraysOf(graph, nil, length)
		switch {
		case arraysErr == nil:
			options.Arrays = arrays
			if other, err2 := model.Open(ctx, net, options); err2 == nil || takesIntegers(graph) {
				m, err = other, err2
			}
		case takesIntegers(graph):
			err = fmt.Errorf("%w: set --length, the number of tokens", arraysErr)
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		out.Problem = strings.TrimPrefix(err.Error(), "model "+path+": ")
		if out.SHA256, err = graph.SHA256(); err != nil {
			return nil, err
		}
		axes, err := infer.Axes(graph, nil)
		if err != nil {
			return nil, err
		}
		for i := range layers {
			layers[i].Axes = axes[layers[i].Name]
		}
	} else {
		out.SHA256, layers = m.SHA256(), m.Layers()
		for _, l := range blocks.Choose(m.Graph(), m.Input().Name, m.Output(), layers) {
			roles[l.Name] = l.Role
		}
		out.Classes, out.Scores, out.Takes, out.Basis = m.Classes(), m.Scores(), takes(m), m.ScoresBasis()
		if out.Classes > 0 {
			out.Output = m.Output()
		}
		out.Doubts = append(m.Doubts(0), m.DecodedDoubts()...)
		out.Decoded = decoded(m)
		if err := out.preprocessing(path); err != nil {
			note(err.Error())
		}
		if dataPath != "" && out.Config == "" {
			if out.Suggested, err = suggested(ctx, m, dataPath); err != nil {
				return nil, err
			}
		}
		if out.ClassNames, err = m.ClassNames(); err != nil {
			note(err.Error())
		}
	}
	for _, l := range layers {
		out.Layers = append(out.Layers, layerEntry{l.Name, l.Op, l.Node, l.Depth, l.Shape, string(l.Axes), roles[l.Name]})
	}
	return out, nil
}

// takes describes the input of a model.
func takes(m *model.Model) string {
	if m.TakesAudio() {
		return fmt.Sprintf("audio of %d samples", m.Frame().Length)
	}
	if m.TakesArrays() {
		return "arrays"
	}
	return "images " + sizes(m.ImageShape())
}

// takesIntegers reports whether all inputs of a graph take integers, such as token ids.
func takesIntegers(graph *onnx.Model) bool {
	return !slices.ContainsFunc(graph.Inputs(), func(in onnx.ValueInfo) bool { return in.Type != onnx.Int64 && in.Type != onnx.Int32 })
}

func ports(in []onnx.ValueInfo) []port {
	var out []port
	for _, p := range in {
		dims := make([]string, len(p.Shape))
		for i, d := range p.Shape {
			dims[i] = d.String()
		}
		out = append(out, port{p.Name, p.Type.String(), strings.Join(dims, " x ")})
	}
	return out
}

func printInspection(w io.Writer, in *inspection) error {
	t := newTable(w)
	t.printf("model\t%s\nsha256\t%s\nopset\t%d\nparameters\t%d\n", in.Path, in.SHA256, in.Opset, in.Parameters)
	if in.Half != "" {
		t.printf("weights\t%s, computed in float32\n", in.Half)
	}
	for _, p := range in.Inputs {
		t.printf("input\t%s  %s  %s\n", p.Name, p.Type, p.Shape)
	}
	for _, p := range in.Outputs {
		t.printf("output\t%s  %s  %s\n", p.Name, p.Type, p.Shape)
	}
	if in.Takes != "" && !strings.HasPrefix(in.Takes, "images") {
		t.printf("takes\t%s\n", in.Takes)
	}
	if in.Config != "" {
		t.printf("preprocess\t%s\n", in.Config)
	}
	if in.Suggested != nil {
		text, err := json.Marshal(in.Suggested)
		if err != nil {
			return err
		}
		t.printf("preprocess\t%s (guessed)\n", text)
	}
	switch {
	case in.Problem != "":
		t.printf("problem\t%s\n", in.Problem)
	case in.Classes > 0:
		t.printf("classes\t%d (%s of output %s)%s\n", in.Classes, in.Scores, in.Output, firstNames(in.ClassNames))
		t.printf("scores\t%s: %s\n", in.Scores, in.Basis)
	case in.Decoded != nil:
		t.printf("output\t%s\n", in.Decoded)
	default:
		t.printf("classes\tnone: measures of predictions are skipped\n")
		t.printf("scores\tnone: %s\n", in.Basis)
	}
	for _, text := range in.Doubts {
		t.printf("warning\t%s\n", text)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	t.printf("\nlayer\top\tdepth\tshape\taxes\n")
	for _, l := range in.Layers {
		t.printf("%s\t%s\t%d\t%s\t%s\n", l.Name, l.Op, l.Depth, sizes(l.Shape), l.Axes)
	}
	return t.Flush()
}

// firstNames returns the first names of classes, after a colon, or "" if there are none.
func firstNames(names []string) string {
	const most = 4
	switch {
	case len(names) == 0:
		return ""
	case len(names) <= most:
		return ": " + strings.Join(names, "; ")
	}
	return ": " + strings.Join(names[:most], "; ") + "; ..."
}

// sizes writes a shape as "28 x 28".
func sizes(shape []int) string {
	if shape == nil {
		return "?"
	}
	dims := make([]string, len(shape))
	for i, d := range shape {
		dims[i] = fmt.Sprint(d)
	}
	return strings.Join(dims, " x ")
}
