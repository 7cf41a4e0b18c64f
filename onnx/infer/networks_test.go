package infer_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// nets are the test networks, with their penultimate layer (the input of the final classifier) and
// the number of layers by axes. A layer is a tensor that is computed from the input's values. Axes
// are letters: batch N, channels C, rows H, columns W, tokens T; ? is unknown or merges the batch
// with another axis. A letter occurs twice where an axis is split, or for two axes of one kind.
var nets = map[string]struct {
	penultimate string // tensor and its axes
	axes        map[tensor.Axes]int
}{
	"cifar_resnet20":     {"/ReduceMean_output_0 NC", map[tensor.Axes]int{"NCHW": 53, "NC": 2}},
	"mnasnet0_5":         {"/ReduceMean_output_0 NC", map[tensor.Axes]int{"NCHW": 97, "NC": 2}},
	"mobilenet_v3_small": {"/classifier/classifier.1/HardSwish_output_0 NC", map[tensor.Axes]int{"NCHW": 118, "NC": 4}},
	"shufflenet_v2_x0_5": {"/ReduceMean_output_0 NC", map[tensor.Axes]int{"NCHW": 152, "NCCHW": 32, "NC": 2}},
	"squeezenet1_1":      {"/features/features.12/Concat_output_0 NCHW", map[tensor.Axes]int{"NCHW": 64, "NC": 1}},
	"tiny_convnext":      {"/classifier/classifier.1/Flatten_output_0 NC", map[tensor.Axes]int{"NCHW": 22, "NHWC": 106, "NC": 2}},
	"tiny_densenet":      {"/Flatten_output_0 NC", map[tensor.Axes]int{"NCHW": 37, "NC": 2}},
	"tiny_mobilenet":     {"/classifier/classifier.1/HardSwish_output_0 NC", map[tensor.Axes]int{"NCHW": 34, "NC": 4}},
	"tiny_swin": {"/flatten/Flatten_output_0 NC", map[tensor.Axes]int{
		"NCHW": 3, "NHWC": 193, "NC": 2, // outside attention
		"NHHWWC": 8, "NHWHWC": 8, // split into windows, and joined again
		// Tokens of windows; heads, with their queries, keys and values.
		"?TC": 28, "?TCC": 4, "?TCCC": 4, "C?CTC": 4,
		// Per head; attention weights, masked window by window.
		"?CTC": 20, "?CCT": 4, "?CTT": 18, "NTCTT": 4,
	}},
	"tiny_vit": {"/Gather_4_output_0 NC", map[tensor.Axes]int{
		"NCHW": 1, "NCT": 1, "NTC": 72, "NC": 2, // patches, tokens, the class token
		"TNC": 14, "T?C": 8, "?TC": 8, "?CT": 2, "?TT": 4, "?C": 4, // inside attention
	}},
}

func readNet(t *testing.T, name string) *onnx.Model {
	t.Helper()
	m, err := onnx.Read(testdata.Path(t, "nets", name, "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// axesOf returns the axes of a model's tensors, by name.
func axesOf(t *testing.T, m *onnx.Model) map[string]tensor.Axes {
	t.Helper()
	axes, err := infer.Axes(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	return axes
}

// TestAxesOfNets counts the layers that have the same axes.
func TestAxesOfNets(t *testing.T) {
	t.Parallel()
	for name, want := range nets {
		got := map[tensor.Axes]int{}
		m := readNet(t, name)
		axes := axesOf(t, m)
		for _, l := range m.Layers() {
			got[axes[l.Name]]++
		}
		for axes, n := range want.axes {
			if got[axes] != n {
				t.Errorf("%s: %d layers are %s, want %d", name, got[axes], axes, n)
			}
			delete(got, axes)
		}
		if len(got) > 0 {
			t.Errorf("%s: layers have other axes: %v", name, got)
		}
	}
}

// TestAxesOfBlocks checks that outputs of blocks have the axes that the PyTorch code of the network
// gives them.
func TestAxesOfBlocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		net, block string // block is a pattern of names of layers
		axes       tensor.Axes
		n          int // number of layers that match
	}{
		{"tiny_swin", `/features\.[13]\.\d/Add(_1)?_output_0$`, "NHWC", 8},
		{"tiny_swin", `/features/features\.2/reduction/MatMul_output_0$`, "NHWC", 1},
		{"tiny_convnext", `/block\.4/.*Mul_1_output_0$`, "NHWC", 4},
		{"tiny_convnext", `/features\.[13]\.\d/Add_output_0$`, "NCHW", 4},
		{"tiny_vit", `/encoder_layer_\d/Add(_1)?_output_0$`, "NTC", 4},
		{"tiny_densenet", `/Concat(_\d)?_output_0$`, "NCHW", 6},
	} {
		pattern := regexp.MustCompile(c.block)
		n := 0
		m := readNet(t, c.net)
		axes := axesOf(t, m)
		for _, l := range m.Layers() {
			if pattern.MatchString(l.Name) {
				n++
				if axes[l.Name] != c.axes {
					t.Errorf("%s: %s is %s, want %s", c.net, l.Name, axes[l.Name], c.axes)
				}
			}
		}
		if n != c.n {
			t.Errorf("%s: %d layers match %s, want %d", c.net, n, c.block, c.n)
		}
	}
}

func TestAxesOfTrainedResNets(t *testing.T) {
	t.Parallel()
	for _, depth := range []string{"20", "32", "56"} {
		m, err := onnx.Read(testdata.Path(t, "models", "resnet"+depth+"-cifar10.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		axes := axesOf(t, m)
		for _, l := range m.Layers() {
			if a := axes[l.Name]; a != "NCHW" && a != "NC" {
				t.Errorf("ResNet-%s: %s is %s", depth, l.Name, a)
			}
		}
		convolutions, err := m.Select("op:conv")
		if want := map[string]int{"20": 19, "32": 31, "56": 55}[depth]; err != nil || len(convolutions) != want {
			t.Errorf("ResNet-%s: %d convolutions (%v), want %d", depth, len(convolutions), err, want)
		}
	}
}

func TestPenultimate(t *testing.T) {
	t.Parallel()
	for name, want := range nets {
		m := readNet(t, name)
		layers, err := m.Select("penultimate")
		if err != nil || len(layers) != 1 || layers[0].Name+" "+string(axesOf(t, m)[layers[0].Name]) != want.penultimate {
			t.Errorf("%s: %v (%v), want %s", name, layers, err, want.penultimate)
		}
	}
}

// TestLayersAreInOrder checks that layers are distinct and that each has a greater depth (nodes on
// the longest path from the input) than those it is computed from. It also checks that a graph cut
// to end at the middle layer parses, has fewer weights, and has no layers but those listed up to
// there, with the same depths and axes.
func TestLayersAreInOrder(t *testing.T) {
	t.Parallel()
	for name := range nets {
		m := readNet(t, name)
		depth := map[string]int{"x": 0} // of the input and of each layer
		layers := m.Layers()
		for _, l := range layers {
			if _, twice := depth[l.Name]; twice {
				t.Errorf("%s: %s is listed twice", name, l.Name)
			}
			depth[l.Name] = l.Depth
		}
		for _, n := range m.Nodes() {
			out, ok := depth[n.Output[0]]
			for _, in := range n.Input {
				if d, reads := depth[in]; reads && ok && d >= out {
					t.Errorf("%s: %s has depth %d and reads %s of depth %d", name, n.Output[0], out, in, d)
				}
			}
		}
		middle := layers[len(layers)/2].Name
		cut, err := rewrite.WithOutputs(m, []string{middle})
		if err != nil {
			t.Fatal(err)
		}
		data, err := cut.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		again, err := onnx.Parse(data)
		if err != nil {
			t.Fatalf("%s, cut at %s: %v", name, middle, err)
		}
		want := layers[:slices.IndexFunc(layers, func(l tensor.Layer) bool { return l.Name == middle })+1]
		axes, axesCut := axesOf(t, m), axesOf(t, again)
		for _, l := range again.Layers() {
			if i := slices.IndexFunc(want, func(w tensor.Layer) bool { return w.Name == l.Name }); i < 0 || want[i].Depth != l.Depth || axesCut[l.Name] != axes[l.Name] {
				t.Errorf("%s, cut at %s: %v is not a layer of the whole graph", name, middle, l)
			}
		}
		if again.Parameters() >= m.Parameters() {
			t.Errorf("%s, cut at %s: no weights are removed", name, middle)
		}
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	// ResNet-20 has 270,000 weights; folding each BatchNorm into its convolution leaves one bias
	// for each channel.
	if got := readNet(t, "cifar_resnet20").Parameters(); got != 269034 {
		t.Errorf("%d, want 269034", got)
	}
}

// TestStatedAxes checks that axes that a user states replace the inferred ones, also in later
// tensors.
func TestStatedAxes(t *testing.T) {
	t.Parallel()
	m := readNet(t, "tiny_vit")
	axes, err := infer.Axes(m, map[string]tensor.Axes{"/encoder/Add_output_0": "NCT"})
	if err != nil {
		t.Fatal(err)
	}
	layers, err := m.Select("/encoder/Add_output_0", "*encoder_layer_0/ln_1/Sub_output_0")
	if err != nil || len(layers) != 2 || axes[layers[0].Name] != "NCT" || axes[layers[1].Name] != "NCT" {
		t.Errorf("%v (%v)", layers, err)
	}
	for stated, want := range map[tensor.Axes]string{"NHW": "", "NCHW": "names 4 axes, and the tensor has 3", "NXY": "letters other than", "": "letters other than"} {
		_, err := infer.Axes(m, map[string]tensor.Axes{"/encoder/Add_output_0": stated})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", stated, err)
		}
	}
	if _, err := infer.Axes(m, map[string]tensor.Axes{"nothing": "NC"}); err == nil {
		t.Error("axes of a tensor that does not exist are accepted")
	}
}

// TestResidualOfNets counts the sums of residual connections.
func TestResidualOfNets(t *testing.T) {
	t.Parallel()
	for net, n := range map[string]int{"cifar_resnet20": 9, "tiny_mobilenet": 2, "tiny_convnext": 4, "tiny_swin": 8, "tiny_vit": 4} {
		layers, err := readNet(t, net).Select("residual")
		if err != nil || len(layers) != n {
			t.Errorf("%s: %d residual sums, %v; want %d", net, len(layers), err, n)
		}
	}
}
