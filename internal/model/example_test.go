package model_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// writeSums writes a network with three classes, whose scores are the sums of the three channels of
// an image.
func writeSums(dir string) (path string, err error) {
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, -1, 3, 8, 8)
	b.Output("sums", b.ReduceSum(b.Relu(x), false, 2, 3))
	m, err := b.Model()
	if err != nil {
		return "", err
	}
	data, err := m.Bytes()
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "sums.onnx")
	return path, os.WriteFile(path, data, 0o644)
}

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "noether")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path, err := writeSums(dir)
	if err != nil {
		log.Fatal(err)
	}

	library, _, err := ort.Find("") // the file of ONNX Runtime
	if err != nil {
		log.Fatal(err)
	}
	rt, err := ort.Load(library)
	if err != nil {
		log.Fatal(err)
	}
	net, err := rt.OpenNetwork(path, ort.NetworkOptions{})
	if err != nil {
		log.Fatal(err)
	}
	m, err := model.Open(context.Background(), net, model.Options{Layers: []string{"op:Relu"}}) // all ReLUs
	if err != nil {
		log.Fatal(err)
	}
	session, err := m.NewSession(m.Layers(), true) // true: with the class scores
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	buf, err := session.NewBuffers(32) // for at most 32 images
	if err != nil {
		log.Fatal(err)
	}
	image := tensor.New(3, 8, 8)
	image.Data[0] = 1 // a red pixel
	if err := session.Run(context.Background(), []tensor.Tensor{image}, buf); err != nil {
		log.Fatal(err)
	}
	logProbs, err := buf.LogProbs(nil) // nil: of all classes
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Input(), "scores", m.Classes(), "classes by", m.Scores())
	fmt.Println("layer", buf.Layer(0).Shape)
	fmt.Printf("log-probabilities %.3f\n", logProbs.Data)
	// Output:
	// x float[batch 3 8 8] scores 3 classes by logits
	// layer [1 3 8 8]
	// log-probabilities [-0.551 -1.551 -1.551]
}
