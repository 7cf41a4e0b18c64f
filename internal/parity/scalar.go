package parity

import (
	"encoding/binary"
	"math"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// scalarOf returns the only element of a tensor.
func scalarOf(w *pb.TensorProto) (float64, bool) {
	raw, t := w.GetRawData(), onnx.Type(w.GetDataType())
	switch {
	case t == onnx.Float && len(w.FloatData) == 1:
		return float64(w.FloatData[0]), true
	case t != onnx.Float && len(w.Int32Data) == 1: // holds all integers of up to 32 bits
		return float64(w.Int32Data[0]), true
	case len(raw) == 0 || len(raw) != t.Size():
		return 0, false
	}
	switch t {
	case onnx.Float:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))), true
	case onnx.Int8:
		return float64(int8(raw[0])), true
	case onnx.Uint8:
		return float64(raw[0]), true
	case onnx.Int16:
		return float64(int16(binary.LittleEndian.Uint16(raw))), true
	case onnx.Uint16:
		return float64(binary.LittleEndian.Uint16(raw)), true
	}
	return 0, false
}
