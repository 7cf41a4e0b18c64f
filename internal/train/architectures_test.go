package train

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// trainable returns the shapes of the weights that training changes, without those of the last
// layer, and the number of parameters, with those of the last layer.
func trainable(t *testing.T, m *onnx.Model) (shapes [][]int, parameters int) {
	t.Helper()
	names, err := Parameters(m, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		w, err := m.Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		parameters += w.Len()
		if !strings.HasPrefix(name, "linear.") {
			shapes = append(shapes, w.Shape)
		}
	}
	return shapes, parameters
}

// sorted returns shapes as sorted text.
func sorted(shapes [][]int) []string {
	var out []string
	for _, s := range shapes {
		out = append(out, fmt.Sprint(s))
	}
	slices.Sort(out)
	return out
}

// TestArchitectures compares the weights of ResNets and VGGs with those of torchvision
// (testdata/architectures.py), and the numbers of parameters with published ones: He et al. 2016,
// table 6, in millions, and those of the usual PyTorch implementations for CIFAR-10.
func TestArchitectures(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/architectures.json")
	if err != nil {
		t.Fatal(err)
	}
	var torchvision map[string][][]int
	if err := json.Unmarshal(raw, &torchvision); err != nil {
		t.Fatal(err)
	}
	// width is the number of channels of the first stage; 0: as published.
	resnet := func(depth, width int) func() (*onnx.Model, error) {
		return func() (*onnx.Model, error) {
			n, err := StandardResNet(depth, width)
			if err != nil {
				return nil, err
			}
			n.Shape, n.Classes = []int{3, 32, 32}, 10
			return n.Build()
		}
	}
	vgg := func(depth, width int) func() (*onnx.Model, error) {
		return VGG{Shape: []int{3, 32, 32}, Classes: 10, Depth: depth, Width: width}.Build
	}
	const biases = 4224 // of the convolutions of a VGG-16: BatchNormalization makes them redundant
	for _, c := range []struct {
		name       string
		build      func() (*onnx.Model, error)
		parameters int // 0: see millions
		// Published number in millions, and the largest error of its rounding.
		millions, rounded float64
	}{
		{name: "resnet18", build: resnet(18, 0), parameters: 11_173_962},
		{name: "resnet34", build: resnet(34, 0), parameters: 21_282_122},
		// torchvision's, with 10 classes, without the 7 x 7 of its first convolution.
		{name: "resnet50", build: resnet(50, 0), parameters: 23_528_522 - 64*3*(49-9)},
		{name: "resnet101", build: resnet(101, 0), parameters: 42_520_650 - 64*3*(49-9)},
		{name: "resnet152", build: resnet(152, 0), parameters: 58_164_298 - 64*3*(49-9)},
		{name: "resnet20", build: resnet(20, 0), millions: 0.27, rounded: 0.01},
		{name: "resnet32", build: resnet(32, 0), millions: 0.46, rounded: 0.01},
		{name: "resnet44", build: resnet(44, 0), millions: 0.66, rounded: 0.01},
		{name: "resnet56", build: resnet(56, 0), millions: 0.85, rounded: 0.01},
		{name: "resnet110", build: resnet(110, 0), millions: 1.7, rounded: 0.05},
		{name: "vgg11", build: vgg(11, 0), millions: 9.23, rounded: 0.01},
		{name: "vgg13", build: vgg(13, 0), millions: 9.41, rounded: 0.01},
		{name: "vgg16", build: vgg(16, 0), parameters: 14_728_266 - biases},
		{name: "vgg19", build: vgg(19, 0), millions: 20.04, rounded: 0.01},
	} {
		m, err := c.build()
		if err != nil {
			t.Fatal(err)
		}
		shapes, parameters := trainable(t, m)
		if want, ok := torchvision[c.name]; ok {
			if strings.HasPrefix(c.name, "resnet") {
				// The first convolution, where torchvision's differs.
				want = append(want, []int{64, 3, 3, 3})
			}
			if got := sorted(shapes); !slices.Equal(got, sorted(want)) {
				t.Errorf("%s: weights %v, torchvision's %v", c.name, got, sorted(want))
			}
		}
		if c.parameters > 0 && parameters != c.parameters {
			t.Errorf("%s: %d parameters, want %d", c.name, parameters, c.parameters)
		}
		if d := float64(parameters)/1e6 - c.millions; c.millions > 0 && !(d <= c.rounded && d >= -c.rounded) {
			t.Errorf("%s: %d parameters, want %g million", c.name, parameters, c.millions)
		}
	}
}

// Narrow networks of the published depths train: the loss of one batch falls.
func TestNarrowArchitecturesTrain(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	resnet, err := StandardResNet(34, 2)
	if err != nil {
		t.Fatal(err)
	}
	resnet.Shape, resnet.Classes = []int{3, 32, 32}, 3
	for name, build := range map[string]func() (*onnx.Model, error){
		"resnet34":   resnet.Build,
		"vgg16":      VGG{Shape: []int{3, 33, 40}, Classes: 3, Width: 2, Dropout: 0.1}.Build,
		"bottleneck": ResNet{Shape: []int{3, 32, 32}, Classes: 3, Widths: []int{4, 8}, Blocks: []int{1, 2}, Bottleneck: true, Stem: ImageNetStem}.Build,
		"signal":     VGG{Shape: []int{1, 64}, Classes: 3, Depth: 11, Width: 2}.Build,
	} {
		m, err := build()
		if err != nil {
			t.Fatal(err)
		}
		tr, err := New(rt, Spec{Model: m, Loss: CrossEntropy, TrainingMode: true, Optimiser: Adam{Rate: 1e-2}, Engine: ort.Options{Threads: 1}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer tr.Close()
		x := tensor.New(append([]int{6}, m.Inputs()[0].Sizes()[1:]...)...)
		for i := range x.Data {
			// A pattern with values in [0, 1), plus a level that tells the six samples apart.
			x.Data[i] = float32(i*i%17)/17 + float32(i*6/len(x.Data))/6
		}
		var first, last float64
		for i := range 25 {
			loss, err := tr.Step(t.Context(), Batch{Inputs: []tensor.Tensor{x}, Targets: Targets{Classes: []int{0, 1, 2, 0, 1, 2}}})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if last = loss; i == 0 {
				first = loss
			}
		}
		if !(last < first/2) {
			t.Errorf("%s: the loss goes from %g to %g", name, first, last)
		}
	}
}

func TestArchitectureErrors(t *testing.T) {
	t.Parallel()
	for _, depth := range []int{0, 2, 19, 52, 100, 164, -4, 1 << 40} {
		if _, err := StandardResNet(depth, 0); err == nil || !strings.Contains(err.Error(), "18, 34, 50, 101, 152, or 6 n + 2") {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
	for want, n := range map[string]VGG{
		"11, 13, 16 or 19":  {Shape: []int{3, 32, 32}, Classes: 2, Depth: 18},
		"sides of at least": {Shape: []int{3, 32, 31}, Classes: 2},
		"at least 1":        {Shape: []int{3, 32, 32}, Classes: 2, Width: -1},
		"dropout":           {Shape: []int{3, 32, 32}, Classes: 2, Dropout: 1},
	} {
		if _, err := n.Build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", n, err)
		}
	}
	for want, n := range map[string]ResNet{
		"numbers of blocks for 2": {Shape: []int{3, 8, 8}, Classes: 2, Blocks: []int{1, 2}},
		"unknown stem":            {Shape: []int{3, 8, 8}, Classes: 2, Stem: "mnist"},
		"at least one channel":    {Shape: []int{3, 8, 8}, Classes: 2, Blocks: []int{1, 0, 1}},
	} {
		if _, err := n.Build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", n, err)
		}
	}
}
