package ort

import (
	"fmt"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/noether-ml/noether/onnx"
)

// adopt makes a Value of a tensor that the engine allocated.
func adopt(v binding.Value) (*Value, error) {
	switch t := v.(type) {
	case *binding.Tensor[float32]:
		return adoptTensor(t), nil
	case *binding.Tensor[float64]:
		return adoptTensor(t), nil
	case *binding.Tensor[int8]:
		return adoptTensor(t), nil
	case *binding.Tensor[int16]:
		return adoptTensor(t), nil
	case *binding.Tensor[int32]:
		return adoptTensor(t), nil
	case *binding.Tensor[int64]:
		return adoptTensor(t), nil
	case *binding.Tensor[uint8]:
		return adoptTensor(t), nil
	case *binding.Tensor[uint16]:
		return adoptTensor(t), nil
	case *binding.Tensor[uint32]:
		return adoptTensor(t), nil
	case *binding.Tensor[uint64]:
		return adoptTensor(t), nil
	case *binding.Tensor[bool]:
		return adoptTensor(t), nil
	}
	err := fmt.Errorf("a result of type %v must be given a tensor before the run", onnx.Type(v.DataType()))
	_ = v.Destroy()
	return nil, err
}

func adoptTensor[T Element](t *binding.Tensor[T]) *Value {
	shape := make([]int, len(t.GetShape()))
	for i, d := range t.GetShape() {
		shape[i] = int(d)
	}
	return &Value{typ: typeOf[T](), shape: shape, data: t.GetData(), bound: t}
}
