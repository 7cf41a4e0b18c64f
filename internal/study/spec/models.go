package spec

import (
	"strings"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/model/output"
	"github.com/noether-ml/noether/tensor"
)

// A Model is an entry of the list models.
type Model struct {
	Name string `key:"name,required" doc:"name in the scores; of a list or glob, the first part of the names, which can be left out"`
	ONNX Path   `key:"onnx" doc:"file of the model, a folder that contains it, or its URL: https, s3, gs, file, or hf://org/name; or a glob such as zoo/*.onnx, or a list"`
	// Activations and URL take the place of ONNX.
	Activations Path                  `key:"activations" doc:"in place of onnx: a folder of activations that were recorded on the samples of the data, see the reference on models"`
	URL         string                `key:"url" doc:"in place of onnx: a model of an inference server that speaks the Open Inference Protocol, such as http://localhost:8000/v2/models/resnet50, or unix:SOCKET:/v2/models/resnet50"`
	Python      string                `key:"python" doc:"in place of onnx: a function of Python without parameters that returns the model, package.module:function, or a model itself; see --allow-python"`
	Version     string                `key:"version" doc:"with url: version of the model; default: the server's choice"`
	SHA256      string                `key:"sha256" doc:"SHA-256 of the file; a different hash is an error. A run writes it into the resolved study"`
	Preprocess  Preprocess            `key:"preprocess" doc:"conversion of an image with values in [0, 1] to the model's input"`
	Layers      []string              `key:"layers" doc:"all | op:TYPE | a glob on tensor names | residual (sums of a block and its shortcut) | penultimate (input of the final classifier) | output"`
	Tags        map[string]string     `key:"tags" doc:"keys and values that the report and run.json contain"`
	Input       string                `key:"input" doc:"name of the image input, if there are several"`
	Inputs      map[string]inputValue `key:"inputs" doc:"values of the other inputs of the model: a number or a list"`
	Layout      string                `key:"layout" enum:"NCHW|NHWC" doc:"layout of the image input; default: inferred"`
	Axes        map[string]string     `key:"axes" doc:"axes of tensors that are inferred wrongly, for example {/features/out: NHWC}"`
	Tokens      *Tokens               `key:"tokens" doc:"layout of the tokens; default: inferred"`
	Output      Output                `key:"output" doc:"name of the output with the class scores, or the format of outputs with positions in the image, for example {boxes: yolov8}; default: inferred"`
	Scores      string                `key:"scores" enum:"logits|probabilities|none" doc:"kind of class scores; default: inferred"`

	// An entry with checkpoints is replaced by entries with onnx before it is decoded.
	Checkpoints string `key:"checkpoints" doc:"in place of name and onnx: a folder of noether train. Each network in it becomes an entry with the tags run and epoch"`
	Every       int    `key:"every" min:"1" doc:"with checkpoints: the networks of the first epoch and of every N-th; default: the final network of each training"`

	node *config.Node // the entry in the parsed file, with its position for errors
}

// Address returns the path or URL of the model's file, the folder of its activations, its address
// on an inference server, or the function of Python that returns it.
func (m Model) Address() Path {
	switch m.Engine() {
	case "activations":
		return m.Activations
	case "url":
		return Path{text: m.URL, node: m.At("url")}
	case "python":
		return Path{text: m.Python, node: m.At("python")}
	}
	return m.ONNX
}

// check returns an error unless the entry has one of a file, a folder of activations, an address on
// an inference server and a function of Python.
func (m Model) check() error {
	var given []string
	for _, key := range EngineKeys() {
		if m.node.Get(key) != nil {
			given = append(given, key)
		}
	}
	switch {
	case len(given) == 0:
		return m.node.Errorf("the key \"onnx\" is missing; activations, a folder of recorded ones, url, a model of an inference server, or python, a function that returns a model, may take its place")
	case len(given) > 1:
		return m.At(given[1]).Errorf("leave out %s: a model has one of them", strings.Join(given, " or "))
	case m.Python != "" && !IsFunction(m.Python):
		return m.At("python").Errorf("python is %q: it must be a function, such as package.module:function", m.Python)
	case m.Version != "" && m.URL == "":
		return m.At("version").Errorf("version is that of a model of an inference server, and there is no url")
	}
	return nil
}

// Tokens is the layout of a model's tokens.
type Tokens struct {
	Prefix int   `key:"prefix" default:"0" min:"0" doc:"number of leading tokens without a position in the image: class, distillation, registers"`
	Grid   []int `key:"grid,required" doc:"rows and columns of the other tokens, for example [14, 14]"`
}

// TokenLayout returns the layout of the entry's tokens, or nil if the entry does not give it. A
// grid that is not two positive numbers is an error.
func (m Model) TokenLayout() (*tensor.Tokens, error) {
	if m.Tokens == nil {
		return nil, nil
	}
	if g := m.Tokens.Grid; len(g) != 2 || g[0] < 1 || g[1] < 1 {
		return nil, m.At("tokens").Errorf("grid is %v: it must be two numbers of at least 1, the rows and the columns", g)
	}
	return &tensor.Tokens{Prefix: m.Tokens.Prefix, Height: m.Tokens.Grid[0], Width: m.Tokens.Grid[1]}, nil
}

// Output tells which output of a model has class scores, or how dense outputs are decoded.
type Output struct {
	// The tag short: `output: NAME` stands for `output: {scores: NAME}`.
	Scores      string   `key:"scores" short:"true" doc:"name of the output with the class scores"`
	Boxes       string   `key:"boxes" enum:"torchvision|efficient-nms|labelled|corners|detr|deformable-detr|suppressed|yolov10|yolov8|yolox|yolov5" doc:"layout of boxes"`
	ClassMap    string   `key:"class-map" enum:"logits|probabilities|labels" doc:"a map of scores of classes, or of class numbers"`
	Keypoints   string   `key:"keypoints" enum:"heat-maps" doc:"keypoints of the image, each the largest value of a map"`
	Values      string   `key:"values" enum:"image|depth|normals|normals-y-up|map" doc:"a map of values; normals have components to the right, down (or up) and out of the image"`
	Names       []string `key:"names" doc:"names of the outputs that are decoded; default: inferred"`
	Classes     int      `key:"classes" min:"1" max:"100000" doc:"number of classes, if the file does not have it"`
	Confidence  float64  `key:"confidence" min:"0" max:"1" doc:"boxes of a lower score are removed; default: 0.01. Keypoints of a lower value are not visible; default: all are"`
	Suppress    float64  `key:"suppress" min:"0" max:"1" doc:"intersection over union with a stronger box of the class above which a box is removed; 1: none is. Default: 0.7 for layouts without suppression, else 1"`
	Most        int      `key:"most" min:"1" max:"2000" doc:"boxes of an image that are kept; default: 300"`
	Coordinates string   `key:"coordinates" enum:"pixels|fractions" doc:"of boxes: pixels of the model's image, or fractions of its sides; default: fractions for detr, deformable-detr and values that are fractions, else pixels"`
}

// Setting returns how dense outputs of the model are decoded. More than one kind of them is an
// error.
func (m Model) Setting() (output.Setting, error) {
	o := m.Output
	s := output.Setting{ClassMap: o.ClassMap, Boxes: o.Boxes, Keypoints: o.Keypoints, Values: o.Values, Outputs: o.Names, Classes: o.Classes, Confidence: o.Confidence, Suppress: o.Suppress, Most: o.Most}
	kinds := 0
	for _, kind := range []string{o.Boxes, o.ClassMap, o.Keypoints, o.Values} {
		if kind != "" {
			kinds++
		}
	}
	if kinds > 1 {
		return s, m.At("output").Errorf("set one of boxes, class-map, keypoints and values")
	}
	if o.Coordinates != "" {
		fractions := o.Coordinates == "fractions"
		s.Fractions = &fractions
	}
	return s, nil
}

// An inputValue is the value of an input of the model that is not the image: a number, or a list of
// numbers. Nested lists are flattened.
type inputValue []float64

// DecodeNode implements config.Decoder.
func (v *inputValue) DecodeNode(n *config.Node) error {
	if n.Kind != config.List {
		x, err := n.Number()
		*v = inputValue{x}
		return err
	}
	for _, item := range n.Items {
		var inner inputValue
		if err := inner.DecodeNode(item); err != nil {
			return err
		}
		*v = append(*v, inner...)
	}
	return nil
}

// JSONSchema implements config.Schemer.
func (inputValue) JSONSchema() map[string]any {
	return map[string]any{"type": []string{"number", "array"}}
}

// At returns the node of the file at a path of keys of the entry, or the innermost node around it
// that exists.
func (m Model) At(path ...string) *config.Node { return m.node.Find(path...) }

// SetSHA256 writes the hash of the model's file into the entry of the study.
func (m Model) SetSHA256(sum string) { m.node.Set("sha256", sum) }
