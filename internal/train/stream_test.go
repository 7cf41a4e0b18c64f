package train

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/transform"
)

// shapes returns n images of 12 x 12 pixels, with generated coloured shapes.
func shapes(t *testing.T, n int) dataset.Source {
	t.Helper()
	src, err := dataset.OpenShapes(dataset.ShapesOptions{N: n, Size: 12, Channels: 3, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// collect returns copies of the inputs and classes that a stream, which reads batches from a data
// set, yields in an epoch for the samples with the given indices, in batches of the given size.
func collect(t *testing.T, s *Stream, epoch, size int, indices ...int) (values []float32, classes []int) {
	t.Helper()
	for b, err := range s.Batches(t.Context(), epoch, indices, size) {
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, b.Inputs[0].Data...)
		classes = append(classes, b.Classes...)
		if n := b.len(); n > size || n*3*12*12 != len(b.Inputs[0].Data) || n != len(b.Classes) {
			t.Fatalf("a batch of %d samples with %d values and %d classes", n, len(b.Inputs[0].Data), len(b.Classes))
		}
	}
	return values, classes
}

// Augmentation depends on the sample and the epoch, not on the batch size or the number of workers.
// Epoch 0 stands for evaluation, which does not augment.
func TestStream(t *testing.T) {
	t.Parallel()
	src := shapes(t, 30)
	rotate := transform.Rotate{Angle: transform.Uniform(-90, 90)}
	s := &Stream{Data: src, Augment: rotate, Seed: 4}
	a, classes := collect(t, s, 1, 4, 3, 1, 2, 7, 9, 11, 0)
	if len(classes) != 7 {
		t.Fatalf("%d classes, want 7", len(classes))
	}
	b, _ := collect(t, &Stream{Data: src, Augment: rotate, Seed: 4, Read: dataset.ReadOptions{Workers: 1}}, 1, 3, 3, 1, 2, 7, 9, 11, 0)
	if !slices.Equal(a, b) {
		t.Error("the batch size changes the images")
	}
	if c, _ := collect(t, s, 2, 4, 3, 1, 2, 7, 9, 11, 0); slices.Equal(a, c) {
		t.Error("epoch 2 has the same augmented images as epoch 1")
	}
	plain, _ := collect(t, s, 0, 4, 3)
	sample, err := src.At(t.Context(), 3, dataset.Frame{}) // Frame{}: an image of its own size
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(plain, sample.Input.Data) || classes[0] != sample.Label {
		t.Error("evaluation transforms the samples")
	}
	normal, _ := collect(t, &Stream{Data: src, Preprocess: model.Preprocess{Mean: []float32{0.5}, Std: []float32{0.25}}}, 0, 4, 3)
	for i, v := range plain {
		if want := (v - 0.5) / 0.25; normal[i] != want {
			t.Fatalf("value %d is %g, want %g", i, normal[i], want)
		}
	}
}

// Each waveform is standardised to its own mean 0 and variance 1.
func TestStreamAudio(t *testing.T) {
	t.Parallel()
	src, err := dataset.OpenTones(dataset.TonesOptions{N: 4, Rate: 8000, Length: 0.1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	b, err := (&Stream{Data: src, Factor: "pitch", Preprocess: model.Preprocess{Standardise: true}}).Batch(t.Context(), []int{1, 3})
	if err != nil {
		t.Fatal(err)
	}
	const length = 800 // 0.1 s at 8000 Hz
	for i := range 2 {
		var sum, squares float64
		for _, v := range b.Inputs[0].Data[length*i:][:length] {
			sum, squares = sum+float64(v), squares+float64(v)*float64(v)
		}
		if math.Abs(sum/length) > 1e-5 || math.Abs(squares/length-1) > 1e-3 {
			t.Errorf("waveform %d has the mean %g and the mean square %g, want 0 and 1", i, sum/length, squares/length)
		}
	}
	if _, err := (&Stream{Data: src, Factor: "pitch", Preprocess: model.Preprocess{Mean: []float32{1, 2}}}).Batch(t.Context(), []int{0}); err == nil {
		t.Error("two means for a waveform: no error")
	}
}

// Training on a stream gives the same weights as training on arrays, and with two optimiser steps
// in one run of the graph the same up to rounding. trainerOf, of trainingmode_test.go, returns a
// trainer with cross-entropy and SGD.
func TestFitStream(t *testing.T) {
	t.Parallel()
	src := shapes(t, 60)
	indices := dataset.Indices(src.Len())
	whole, err := (&Stream{Data: src}).Batch(t.Context(), indices)
	if err != nil {
		t.Fatal(err)
	}
	arrays := &Arrays{Inputs: whole.Inputs, Targets: Targets{Classes: whole.Classes}}
	fit := func(src Source, more Spec) []float32 {
		m, err := ConvNet{Shape: []int{3, 12, 12}, Classes: len(shapes(t, 1).Classes()), Widths: []int{4}, Depth: 1, Seed: 1}.Build()
		if err != nil {
			t.Fatal(err)
		}
		more.Model, more.TrainingMode = m, true
		tr := trainerOf(t, more)
		epochs, err := tr.Fit(t.Context(), src, src, FitOptions{Epochs: 2, Batch: 16, Seed: 3, KeepLast: true})
		if err != nil || len(epochs) != 2 {
			t.Fatalf("%d epochs, %v", len(epochs), err)
		}
		return tr.Weights()["linear.weight"].Data
	}
	fromArrays, fromStream, unrolled := fit(arrays, Spec{}), fit(&Stream{Data: src}, Spec{}), fit(&Stream{Data: src}, Spec{StepsPerRun: 2})
	if !slices.Equal(fromArrays, fromStream) {
		t.Error("a stream and arrays give different weights")
	}
	for i := range fromStream {
		if d := fromStream[i] - unrolled[i]; d > 1e-5 || d < -1e-5 {
			t.Fatalf("weight %d differs by %g with two steps in a run", i, d)
		}
	}
}

func TestStreamErrors(t *testing.T) {
	t.Parallel()
	src := shapes(t, 4)
	for want, s := range map[string]*Stream{
		`no factor "size"`: {Data: src, Factor: "size"},
		"mean has 2":       {Data: src, Preprocess: model.Preprocess{Mean: []float32{1, 2}}},
	} {
		_, err := s.Batch(t.Context(), []int{0, 1})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	// A factor is a known property of a sample, such as its position.
	x, err := (&Stream{Data: src, Factor: src.Factors()[0]}).Batch(t.Context(), []int{2, 0})
	if err != nil || fmt.Sprint(x.Target.Shape) != "[2 1]" || len(x.Classes) != 0 {
		t.Errorf("a factor as the target: %v, %v, %v", x.Target.Shape, x.Classes, err)
	}
}
