// Package modeltest opens ONNX files with ONNX Runtime for tests.
//
//	m, err := modeltest.Open(t, "net.onnx", model.Options{Layers: []string{"all"}})
package modeltest

import (
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/orttest"
)

// Open returns the model of a file. The network has the last of the options, if there are some.
func Open(t testing.TB, path string, o model.Options, network ...ort.NetworkOptions) (*model.Model, error) {
	t.Helper()
	var with ort.NetworkOptions
	if len(network) > 0 {
		with = network[len(network)-1]
	}
	net, err := orttest.Load(t).OpenNetwork(path, with)
	if err != nil {
		return nil, err
	}
	return model.Open(t.Context(), net, o)
}
