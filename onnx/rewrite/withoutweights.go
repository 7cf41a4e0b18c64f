package rewrite

import (
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// WithoutWeights returns a copy without the values of initializers of more than infer.MaxValues
// (4096) elements. Types and shapes, and smaller ones, remain for shape inference, with a fraction
// of the memory. It cannot be run.
func WithoutWeights(m *onnx.Model) *onnx.Model {
	p, g := m.Proto(), m.Proto().Graph
	bare := &pb.ModelProto{
		IrVersion: p.IrVersion, OpsetImport: p.OpsetImport, ProducerName: p.ProducerName, ProducerVersion: p.ProducerVersion,
		Domain: p.Domain, ModelVersion: p.ModelVersion, DocString: p.DocString, MetadataProps: p.MetadataProps, Functions: p.Functions,
		Graph: &pb.GraphProto{
			Node: g.Node, Name: g.Name, DocString: g.DocString, Input: g.Input, Output: g.Output, ValueInfo: g.ValueInfo,
			SparseInitializer: g.SparseInitializer, QuantizationAnnotation: g.QuantizationAnnotation,
		},
	}
	for _, t := range g.Initializer {
		if n, err := pbutil.Elements(t.Dims); err == nil && n > infer.MaxValues {
			t = &pb.TensorProto{Name: t.Name, DataType: t.DataType, Dims: t.Dims}
		}
		bare.Graph.Initializer = append(bare.Graph.Initializer, t)
	}
	return m.WithProto(bare)
}
