package oracle

import (
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/recurrence"
	"github.com/noether-ml/noether/onnx/pb"
)

var recurrent = set("LSTM GRU RNN")

// recurrent writes a node out step by step; nothing where its steps cannot be told.
func (w *writer) recurrent(n *pb.NodeProto) []onnx.Value {
	inputs := make([]onnx.Value, len(n.Input))
	for i := range inputs {
		inputs[i] = w.x(n, i)
	}
	values, err := recurrence.Node{
		Builder: w.Builder, Proto: n, Info: w.static, Inputs: inputs, Float: onnx.Double,
		Activation: func(name string, x onnx.Value) onnx.Value {
			switch name {
			case "Softplus":
				return w.softplus(x)
			case "Softsign":
				return w.softsign(x)
			}
			return w.Op(name, nil, x)
		},
	}.Outputs()
	if err != nil {
		return nil
	}
	return values
}
