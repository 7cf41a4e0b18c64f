package model

import (
	"errors"
	"strings"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/model/preprocessing"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/onnx/rewrite"
)

// A GraphNetwork is a network that computes an ONNX graph. Open reads more from it than from other
// networks, and it can become part of other graphs: see Model.Include.
type GraphNetwork interface {
	engine.Network
	// Graph returns the graph, without large weights after FreeWeights.
	Graph() *onnx.Model
	// FullGraph returns the graph with its weights.
	FullGraph() (*onnx.Model, error)
	Rewrite(f func(*onnx.Model) (*onnx.Model, error)) (engine.Network, error)
	// FreeWeights allows the network to free the weights of Graph.
	FreeWeights()
	// Compile returns a session for another graph, on the network's device, with threads (0: the
	// network's) and engine.Request.Spin.
	Compile(graph *onnx.Model, threads int, spin bool) (engine.Session, error)
}

func (m *Model) describe() {
	d := m.net.Metadata()
	m.name, m.properties, m.inputs, m.outputs = d.Name, d.Properties, d.Inputs, d.Outputs
	m.source, _ = m.net.(GraphNetwork)
}

func (m *Model) rewrite(f func(*onnx.Model) (*onnx.Model, error)) error {
	net, err := m.source.Rewrite(f)
	if err != nil {
		return err
	}
	m.net = net
	m.describe()
	return nil
}

// addPreprocessing adds the features to the front of the graph or, if there are none, a missing
// batch axis of an image input. Scores in maps become a tensor, and integers with scales floats too.
func (m *Model) addPreprocessing() error {
	o := m.options
	if m.source != nil {
		err := m.rewrite(func(graph *onnx.Model) (*onnx.Model, error) {
			return rewrite.WithDequantised(rewrite.WithoutMaps(graph)), nil
		})
		if err != nil {
			return err
		}
	}
	switch {
	case o.Arrays != nil:
		return nil
	case m.source == nil && o.Preprocess.Features != nil:
		return &preprocessing.KeyError{Key: "features", Err: errors.New("features are computed in front of an ONNX graph only: the network must compute them itself")}
	case m.source == nil:
		return nil
	case o.Preprocess.Features == nil:
		return m.rewrite(func(graph *onnx.Model) (*onnx.Model, error) { return withBatchAxis(graph, o) })
	}
	return m.rewrite(func(graph *onnx.Model) (*onnx.Model, error) { return withFeatures(graph, o) })
}

// It must be the last rewrite: m.source stays without the decoded output.
func (m *Model) addDecoder() error {
	if m.source == nil {
		return nil
	}
	defer m.source.FreeWeights()
	if m.decoder == nil {
		return nil
	}
	net, err := m.source.Rewrite(func(graph *onnx.Model) (*onnx.Model, error) {
		b := onnx.Extend(graph)
		b.Output(decodedName, m.decoder.Build(b))
		return b.Model()
	})
	if err != nil {
		return err
	}
	net.(GraphNetwork).FreeWeights()
	m.net = net
	return nil
}

func (m *Model) nodes() []*pb.NodeProto {
	if m.source == nil {
		return nil
	}
	return m.Graph().Nodes()
}

// Graph returns the model's graph, which may lack large weights, or nil if the network is no graph.
// If the preprocessing computes features, they are part of the graph.
func (m *Model) Graph() *onnx.Model {
	if m.source == nil {
		return nil
	}
	return m.source.Graph()
}

// Opset returns the version of the operator set of the model's graph, 0 if there is none.
func (m *Model) Opset() int {
	if m.source == nil {
		return 0
	}
	return m.Graph().Opset()
}

// Parameters returns the number of weights, 0 if it is not known.
func (m *Model) Parameters() int64 {
	if m.source == nil {
		return 0
	}
	return m.Graph().Parameters()
}

// Compile returns a session of the engine for another graph: see GraphNetwork.
func (m *Model) Compile(graph *onnx.Model, threads int, spin bool) (engine.Session, error) {
	return m.source.Compile(graph, threads, spin)
}

func typeOf(t engine.Type) onnx.Type {
	return onnx.Type(pb.TensorProto_DataType_value[strings.ToUpper(string(t))])
}

func portsOf(infos []onnx.ValueInfo) (ports []engine.Port) {
	for _, p := range infos {
		port := engine.Port{Name: p.Name, Type: engine.Type(p.Type.String())}
		for _, d := range p.Shape {
			port.Shape = append(port.Shape, engine.Dim(d))
		}
		ports = append(ports, port)
	}
	return ports
}
