package model_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sbinet/npyio/npy"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/gpu/gputest"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/tensor"
)

// nets are the networks of the test data, each a folder with the model, its input x.npy and
// PyTorch's output for it, y.npy.
var nets = []string{"cifar_resnet20", "mnasnet0_5", "mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1",
	"tiny_convnext", "tiny_densenet", "tiny_mobilenet", "tiny_swin", "tiny_vit"}

func readNpy(t *testing.T, path string) tensor.Tensor {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := npy.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var data []float32
	if err := r.Read(&data); err != nil {
		t.Fatal(err)
	}
	return tensor.Tensor{Shape: r.Header.Descr.Shape, Data: data}
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// split returns the images of a batch.
func split(x tensor.Tensor) []tensor.Tensor {
	images := make([]tensor.Tensor, x.Shape[0])
	for i := range images {
		images[i] = x.At(i)
	}
	return images
}

// distance returns the largest absolute difference, divided by the largest absolute value of want.
func distance(got, want []float32) float64 {
	largest, difference := 0.0, 0.0
	for i, v := range want {
		largest = max(largest, math.Abs(float64(v)))
		difference = max(difference, math.Abs(float64(v-got[i])))
	}
	return difference / largest
}

// TestNets compares the output of ten networks with PyTorch's in float64, with all layers read.
func TestNets(t *testing.T) {
	t.Parallel()
	checkNets(t, "cpu", 10)
}

// TestNetsOnWebGPU is TestNets on WebGPU.
func TestNetsOnWebGPU(t *testing.T) {
	gputest.UseDriver(t)
	checkNets(t, "webgpu", 10)
}

// checkNets compares the outputs of networks on a device with PyTorch's in float64. Their distance
// may be the given multiple of that of PyTorch's outputs in float32.
func checkNets(t *testing.T, device string, multiple float64) {
	t.Helper()
	for _, net := range nets {
		t.Run(net, func(t *testing.T) {
			dir := testdata.Path(t, "nets", net)
			m, err := modeltest.Open(t, filepath.Join(dir, "model.onnx"), model.Options{Layers: []string{"all"}, Size: [2]int{64, 64}}, ort.NetworkOptions{Device: device})
			if err != nil {
				t.Fatal(err)
			}
			layers := m.Layers()
			s, err := m.NewSession(layers, true) // true: with the scores of the classes
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			buf, err := s.NewBuffers(3)
			if err != nil {
				t.Fatal(err)
			}
			x, want := readNpy(t, filepath.Join(dir, "x.npy")), readNpy(t, filepath.Join(dir, "y.npy"))
			if err := s.Run(context.Background(), split(x), buf); err != nil {
				t.Fatal(err)
			}
			var float32Error struct{ Y float64 } // distance of PyTorch's outputs in float32 from those in float64
			readJSON(t, filepath.Join(dir, "gap.json"), &float32Error)
			got := buf.Layer(len(layers) - 1)
			if !slices.Equal(got.Shape, want.Shape) {
				t.Fatalf("the last layer has shape %v, want %v", got.Shape, want.Shape)
			}
			if d := distance(got.Data, want.Data); d > multiple*float32Error.Y {
				t.Errorf("the distance from the output in float64 is %.2g, that of PyTorch in float32 %.2g", d, float32Error.Y)
			}
			if m.Classes() != want.Shape[1] || m.Scores() != "logits" {
				t.Errorf("%d classes scored by %s, want %d by logits", m.Classes(), m.Scores(), want.Shape[1])
			}
			checkLogProbs(t, buf, want)
			for i := range layers {
				if j := buf.Layer(i).FirstNonFinite(); j >= 0 {
					t.Errorf("layer %q: value %d is not finite", layers[i].Name, j)
				}
			}
		})
	}
}

// checkLogProbs compares log-probabilities with an explicit log-softmax.
func checkLogProbs(t *testing.T, buf *model.Buffers, logits tensor.Tensor) {
	t.Helper()
	got, err := buf.LogProbs(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range logits.Shape[0] {
		z, sum := logits.At(i).Data, 0.0
		for _, v := range z {
			sum += math.Exp(float64(v))
		}
		for k, v := range z {
			if want := float64(v) - math.Log(sum); math.Abs(float64(got.At(i).Data[k])-want) > 1e-4 {
				t.Fatalf("log-probability %d of image %d is %v, want %v", k, i, got.At(i).Data[k], want)
			}
		}
	}
}

// cifar reads the first n images of the CIFAR-10 test set.
func cifar(t testing.TB, n int) (images []tensor.Tensor, labels []int) {
	t.Helper()
	data, err := os.ReadFile(testdata.Path(t, "cifar10", "test_batch.bin"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		record := data[i*3073 : (i+1)*3073] // a byte for the label and 3 x 32 x 32 for the image
		p := tensor.New(3, 32, 32)
		for j, v := range record[1:] {
			p.Data[j] = float32(v) / 255
		}
		images, labels = append(images, p), append(labels, int(record[0]))
	}
	return images, labels
}

// cifarNorm is the preprocessing of the CIFAR-10 networks: the mean and standard deviation of
// ImageNet.
var cifarNorm = model.Preprocess{Mean: []float32{0.485, 0.456, 0.406}, Std: []float32{0.229, 0.224, 0.225}}

// TestCifar compares with golden values: testdata/cifar.py runs the same networks operator by
// operator in PyTorch and writes the number of correct predictions and the log-probabilities of the
// first image.
func TestCifar(t *testing.T) {
	t.Parallel()
	images, labels := cifar(t, 500)
	golden := map[string]struct { // by network
		Correct int
		First   []float32
	}{}
	readJSON(t, "testdata/cifar.json", &golden)
	if len(golden) != 3 {
		t.Errorf("%d networks, want 3", len(golden))
	}
	for name, want := range golden {
		m, err := modeltest.Open(t, testdata.Path(t, "models", name+"-cifar10.onnx"), model.Options{Preprocess: cifarNorm})
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.NewSession(nil, true)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		buf, err := s.NewBuffers(64) // 500 is not a multiple of 64
		if err != nil {
			t.Fatal(err)
		}
		var logProbs [][]float32
		for at := 0; at < len(images); at += buf.Cap() {
			if err := s.Run(context.Background(), images[at:min(at+buf.Cap(), len(images))], buf); err != nil {
				t.Fatal(err)
			}
			p, err := buf.LogProbs(nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range buf.Len() {
				logProbs = append(logProbs, slices.Clone(p.At(i).Data))
			}
		}
		correct := 0
		for i, p := range logProbs {
			if slices.Index(p, slices.Max(p)) == labels[i] {
				correct++
			}
		}
		if correct != want.Correct {
			t.Errorf("%s: %d of 500 correct, PyTorch has %d", name, correct, want.Correct)
		}
		if d := distance(logProbs[0], want.First); !(d <= 1e-5) {
			t.Errorf("%s: log-probabilities of the first image, at distance %.2g: %v, want %v", name, d, logProbs[0], want.First)
		}
	}
}
