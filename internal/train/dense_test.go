package train

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/checkpoint"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// twoHeads returns the network of testdata/dense.py with the given weights. It has two outputs: y,
// three logits for each position (row and column), and v, two logits for each image. The helper
// floats, of train_test.go, returns a tensor of given values and shape, and zeros for no values.
func twoHeads(t *testing.T, w map[string][]float64) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, -1, 2, 5, 4)
	z := b.Relu(b.Conv(x, b.Const("conv", floats(w["conv"], 4, 2, 3, 3)), "", onnx.Attrs{"pads": []int{1, 1, 1, 1}, "kernel_shape": []int{3, 3}}))
	b.Output("y", b.Conv(z, b.Const("head", floats(w["head"], 3, 4, 1, 1)), "", onnx.Attrs{"kernel_shape": []int{1, 1}}))
	pooled := b.Flatten(b.Op("GlobalAveragePool", nil, z), 1)
	b.Output("v", b.Add(b.MatMul(pooled, b.Const("weight", floats(w["weight"], 4, 2))), b.Const("bias", floats(w["bias"], 2))))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestGoldenDense checks that the cross entropy of positions, alone and with a second task (a loss
// on another output), agrees with PyTorch to 1e-5: losses, the fraction of correct positions, and
// the weights after the last step. A mask holds the class of each position.
func TestGoldenDense(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/dense.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Start, End map[string][]float64          // weights before the first and after the last step
		Batches    []struct{ X, T, P []float64 } // images, their masks, targets of output v
		Losses     []float64                     // of each step
		Positions  []float64                     // the loss of the masks alone, of each step
		Correct    []float64                     // the fraction of correct positions, of each step
	}
	if err := json.Unmarshal(raw, &golden); err != nil {
		t.Fatal(err)
	}
	checkClose := func(what string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 1e-5*max(1, math.Abs(want))) {
			t.Errorf("%s is %.8g, PyTorch's %.8g", what, got, want)
		}
	}
	m := twoHeads(t, golden.Start)
	tasks := []Task{{Output: "v", Loss: BinaryCrossEntropy, Weight: 0.5}}
	for _, perRun := range []int{1, 4} {
		tr, err := New(orttest.Load(t), Spec{Model: m, Output: "y", Loss: PositionCrossEntropy, Tasks: tasks, Optimiser: SGD{Rate: 0.2, Momentum: 0.9}, StepsPerRun: perRun})
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		alone, err := New(orttest.Load(t), Spec{Model: m, Output: "y", Loss: PositionCrossEntropy, Optimiser: SGD{Rate: 0.2}})
		if err != nil {
			t.Fatal(err)
		}
		defer alone.Close()
		first := golden.Batches[0]
		dense := Batch{Inputs: []tensor.Tensor{floats(first.X, 3, 2, 5, 4)}, Targets: Targets{Masks: floats(first.T, 3, 5, 4)}}
		loss, err := alone.Step(t.Context(), dense)
		if err != nil {
			t.Fatal(err)
		}
		checkClose("the loss of the positions", loss, golden.Positions[0])
		var batches []Batch
		for _, b := range golden.Batches {
			batches = append(batches, Batch{Inputs: []tensor.Tensor{floats(b.X, 3, 2, 5, 4)}, Targets: Targets{Masks: floats(b.T, 3, 5, 4)}, Tasks: []Targets{{Target: floats(b.P, 3, 2)}}})
		}
		metrics, err := tr.steps(t.Context(), batches)
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range metrics {
			checkClose("the loss", got.Loss, golden.Losses[i])
			checkClose("the fraction of correct positions", got.Accuracy, golden.Correct[i])
		}
		for name, w := range tr.Weights() {
			for i, v := range w.Data {
				checkClose(name, float64(v), golden.End[name][i])
			}
		}
	}
}

// TestMeanIoU checks that the mean IoU (intersection over union, the mean over the classes that
// occur in the masks) equals the one counted position by position, for any batch size.
func TestMeanIoU(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	const n = 7
	data := &Arrays{Inputs: []tensor.Tensor{tensor.New(n, 3, 4, 5)}, Targets: Targets{Masks: tensor.New(n, 4, 5)}}
	for i := range data.Inputs[0].Data {
		data.Inputs[0].Data[i] = float32(r.NormFloat64())
	}
	for i := range data.Masks.Data {
		// -1 (no class), 0 or 1; class 2 is only predicted.
		data.Masks.Data[i] = float32(r.IntN(3) - 1)
	}
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, -1, 3, 4, 5)
	b.Output("y", b.Mul(x, b.Const("w", tensor.Tensor{Shape: []int{1}, Data: []float32{1}})))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	tr, err := New(orttest.Load(t), Spec{Model: m, Loss: PositionCrossEntropy, Optimiser: SGD{Rate: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	var intersection, union [3]float64 // positions of each class
	for s := range n {
		for p := range 20 { // positions: 4 x 5
			best := 0
			for k := range 3 {
				if v := data.Inputs[0].At(s).Data; v[k*20+p] > v[best*20+p] {
					best = k
				}
			}
			truth := int(data.Masks.At(s).Data[p])
			switch {
			case truth < 0:
			case truth == best:
				intersection[best]++
				union[best]++
			default:
				union[best]++
				union[truth]++
			}
		}
	}
	want := (intersection[0]/union[0] + intersection[1]/union[1]) / 2
	for _, size := range []int{1, 3, 7} {
		got, err := tr.Evaluate(t.Context(), data, size)
		if err != nil || math.Abs(got.MeanIoU-want) > 1e-12 {
			t.Errorf("batches of %d: mean IoU %g, want %g, %v", size, got.MeanIoU, want, err)
		}
	}
}

// TestStreamOfMasks checks the targets that a Stream, which reads batches from a data set, takes
// from masks: the mask, transformed by the augmentation like the image, and the presence of each
// class in it. The arguments of Batches are the context, the epoch, the indices of the samples and
// the batch size.
func TestStreamOfMasks(t *testing.T) {
	t.Parallel()
	src, err := dataset.OpenScenes(dataset.ScenesOptions{ShapesOptions: dataset.ShapesOptions{N: 6, Size: 16}})
	if err != nil {
		t.Fatal(err)
	}
	clean := &Stream{Data: src, Factor: MaskTarget, Tasks: []string{PresenceTarget}, MaskClasses: 9}
	b, err := clean.Batch(t.Context(), []int{4, 1})
	if err != nil {
		t.Fatal(err)
	}
	for row, i := range []int{4, 1} {
		s, err := src.At(t.Context(), i, dataset.Frame{}) // Frame{}: images of their own size
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(b.Masks.At(row).Data, s.Truth.Mask.Data) {
			t.Errorf("the mask of sample %d differs from its truth", i)
		}
		for k, has := range b.Tasks[0].Target.At(row).Data {
			if slices.Contains(s.Truth.Mask.Data, float32(k+1)) != (has == 1) {
				t.Errorf("sample %d: the presence of class %d is %g, unlike in its mask", i, k+1, has)
			}
		}
	}
	masks, image := b.Masks.Clone(), b.Inputs[0].Clone()
	flipped := &Stream{Data: src, Factor: MaskTarget, Augment: transform.Flip{}}
	for f, err := range flipped.Batches(t.Context(), 1, []int{4, 1}, 2) {
		if err != nil {
			t.Fatal(err)
		}
		// 16 x 16 = 256 values are the mask, or a channel of the image, of one sample.
		for i := range masks.Data {
			mirrored := i/16*16 + 15 - i%16
			if f.Masks.Data[i] != masks.Data[mirrored] || f.Inputs[0].Data[i] != image.Data[mirrored] && i < 256 {
				t.Fatalf("position %d is not mirrored", i)
			}
		}
	}
	shifted := &Stream{Data: src, Factor: MaskTarget, Augment: transform.Translate{X: transform.Fixed(0.25)}}
	for f, err := range shifted.Batches(t.Context(), 1, []int{4}, 1) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range 256 {
			// The image is moved by a quarter of 16 columns: nothing is known there.
			want := float32(-1)
			if i%16 >= 4 {
				want = masks.Data[i-4]
			}
			if f.Masks.Data[i] != want {
				t.Fatalf("position %d has class %g, want %g", i, f.Masks.Data[i], want)
			}
		}
	}
	shapes, err := dataset.OpenShapes(dataset.ShapesOptions{N: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&Stream{Data: shapes, Factor: MaskTarget}).Batch(t.Context(), []int{0}); err == nil || !strings.Contains(err.Error(), "no mask") {
		t.Errorf("data without masks: %v", err)
	}
}

// TestSegmenter checks that segmenters with either decoder, and a second task, learn scenes (images
// of several figures), and that an interrupted training resumes with the same results.
func TestSegmenter(t *testing.T) {
	t.Parallel()
	src, err := dataset.OpenScenes(dataset.ScenesOptions{ShapesOptions: dataset.ShapesOptions{N: 48, Size: 16, Kinds: []string{"disc", "bar"}, Scale: []float64{0.4, 0.7}}, Figures: []int{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	for _, decoder := range []string{"fcn", "unet"} {
		m, err := Segmenter{Encoder: ResNet{Shape: []int{3, 16, 16}, Widths: []int{6, 8, 10}, Blocks: []int{1}, Seed: 3}, Decoder: decoder, Classes: 3, Heads: []Head{{"presence", 2}}}.Build()
		if err != nil {
			t.Fatal(err)
		}
		spec := Spec{Model: m, Output: "y", Loss: PositionCrossEntropy, TrainingMode: true, Optimiser: Adam{Rate: 1e-2}, Tasks: []Task{{"presence", BinaryCrossEntropy, 0.5}}}
		stream := func() *Stream {
			return &Stream{Data: src, Factor: MaskTarget, Tasks: []string{PresenceTarget}, MaskClasses: 3}
		}
		// fit trains for six epochs, or is interrupted after fewer.
		fit := func(epochs int, store state.Checkpoint) ([]Epoch, map[string]tensor.Tensor) {
			tr, err := New(orttest.Load(t), spec)
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			o := FitOptions{Epochs: 6, Batch: 12, KeepLast: true, Checkpoint: store}
			if epochs < 6 {
				o.AfterEpoch = func(e Epoch) error {
					if e.Number > epochs {
						return os.ErrDeadlineExceeded // any error interrupts the training
					}
					return nil
				}
			}
			log, _ := tr.Fit(t.Context(), stream(), stream(), o)
			return log, tr.Weights()
		}
		log, weights := fit(6, nil)
		if first, last := log[0], log[5]; !(last.Train < 0.7*first.Train) || !(last.ValidationMeanIoU > first.ValidationMeanIoU) || last.ValidationMeanIoU > 1 {
			t.Errorf("%s: the first epoch is %+v and the last %+v, want a smaller loss and a larger mean IoU", decoder, first, last)
		}
		store := new(checkpoint.Memory)
		fit(3, store)
		again, resumed := fit(6, store)
		if len(again) != 6 || again[2].ValidationMeanIoU != log[2].ValidationMeanIoU {
			t.Errorf("%s: resumed: %+v", decoder, again)
		}
		for name, w := range weights {
			if !slices.Equal(w.Data, resumed[name].Data) {
				t.Errorf("%s: %s differs after an interruption", decoder, name)
			}
		}
	}
}

// TestSegmenterOfBottlenecks checks the shapes of the maps of decoders after an encoder that
// reduces the sides before its stages.
func TestSegmenterOfBottlenecks(t *testing.T) {
	t.Parallel()
	// Each step of the decoder has the channels of the encoder's map of that size; the last, for
	// which there is none, those of the step before.
	want := map[string][]int{
		"stage2/block1/Relu_2": {32, 4, 6}, "decoder1/conv2/Relu": {16, 8, 12}, "decoder2/conv2/Relu": {4, 16, 24},
		"decoder3/conv2/Relu": {4, 32, 48}, "y": {3, 32, 48},
	}
	encoder := ResNet{Shape: []int{3, 32, 48}, Widths: []int{4, 8}, Blocks: []int{1}, Bottleneck: true, Stem: ImageNetStem}
	inputs := map[string][]int{}
	for _, decoder := range []string{"fcn", "unet"} {
		m, err := Segmenter{Encoder: encoder, Decoder: decoder, Classes: 3}.Build()
		if err != nil {
			t.Fatal(err)
		}
		info := infer.Analyze(m)
		for name, shape := range want {
			if got := info.Shape(name); len(got) != 4 || !slices.Equal(got[1:], shape) {
				t.Errorf("%s: %s has the shape %v, want %v", decoder, name, got, shape)
			}
		}
		for _, w := range m.Weights() {
			if strings.HasPrefix(w.Name, "decoder") && strings.HasSuffix(w.Name, ".conv1.weight") {
				inputs[decoder] = append(inputs[decoder], w.Sizes()[1])
			}
		}
	}
	if !slices.Equal(inputs["fcn"], []int{16, 4, 4}) || !slices.Equal(inputs["unet"], []int{32, 8, 4}) {
		t.Errorf("the steps of the decoders read %v channels", inputs)
	}
	encoder.Shape = []int{3, 32, 36}
	if _, err := (Segmenter{Encoder: encoder, Decoder: "fcn", Classes: 3}).Build(); err == nil || !strings.Contains(err.Error(), "divisible by 8") {
		t.Errorf("images of 32 x 36: %v", err)
	}
}

func TestSegmenterErrors(t *testing.T) {
	t.Parallel()
	encoder := ResNet{Shape: []int{3, 16, 16}, Widths: []int{4, 6, 8}}
	indivisible := encoder
	indivisible.Shape = []int{3, 16, 18}
	for want, n := range map[string]Segmenter{ // by a part of the error, as below
		"unknown decoder":        {Encoder: encoder, Decoder: "deeplab", Classes: 2},
		"divisible by 4":         {Encoder: indivisible, Decoder: "fcn", Classes: 2},
		"number of outputs is 0": {Encoder: encoder, Decoder: "fcn"},
		"images":                 {Encoder: ResNet{Shape: []int{3, 16}}, Decoder: "fcn", Classes: 2},
		"head":                   {Encoder: encoder, Decoder: "unet", Classes: 2, Heads: []Head{{"a", 0}}},
	} {
		if _, err := n.Build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	// Output y has three classes.
	m := twoHeads(t, map[string][]float64{"conv": nil, "head": nil, "weight": nil, "bias": nil})
	for want, change := range map[string]func(*Spec){
		"weight":             func(s *Spec) { s.Tasks[0].Weight = -1 },
		"no loss":            func(s *Spec) { s.Tasks[0].Loss = Loss{} },
		"cannot be combined": func(s *Spec) { s.Mixup = 1 },
		"no tensor \"w\"":    func(s *Spec) { s.Tasks[0].Output = "w" },
	} {
		spec := Spec{Model: m, Output: "y", Loss: PositionCrossEntropy, Optimiser: SGD{Rate: 1}, Tasks: []Task{{"v", BinaryCrossEntropy, 1}}}
		change(&spec)
		if tr, err := New(orttest.Load(t), spec); err == nil {
			tr.Close()
			t.Errorf("%s: no error", want)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	tr, err := New(orttest.Load(t), Spec{Model: m, Output: "y", Loss: PositionCrossEntropy, Optimiser: SGD{Rate: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	for want, b := range map[string]Batch{
		"masks have shape": {Targets: Targets{Masks: tensor.New(1, 5, 4)}},
		"class 3, and":     {Targets: Targets{Masks: tensor.Tensor{Shape: []int{2, 5, 4}, Data: slices.Repeat([]float32{3}, 40)}}},
		"class 0.5: want":  {Targets: Targets{Masks: tensor.Tensor{Shape: []int{2, 5, 4}, Data: slices.Repeat([]float32{0.5}, 40)}}},
		"class -2: want":   {Targets: Targets{Masks: tensor.Tensor{Shape: []int{2, 5, 4}, Data: slices.Repeat([]float32{-2}, 40)}}},
		"further tasks":    {Targets: Targets{Masks: tensor.New(2, 5, 4)}, Tasks: make([]Targets, 1)},
	} {
		b.Inputs = []tensor.Tensor{tensor.New(2, 2, 5, 4)}
		if _, err := tr.Step(t.Context(), b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	unlabelled := tensor.Tensor{Shape: []int{2, 5, 4}, Data: slices.Repeat([]float32{-1}, 40)}
	if loss, err := tr.Step(t.Context(), Batch{Inputs: []tensor.Tensor{tensor.New(2, 2, 5, 4)}, Targets: Targets{Masks: unlabelled}}); err != nil || loss != 0 {
		t.Errorf("masks without classes: loss %g, %v", loss, err)
	}
}
