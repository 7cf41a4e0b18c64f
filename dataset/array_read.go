package dataset

import (
	"context"
	"fmt"

	"github.com/noether-ml/noether/tensor"
)

// ReadArray reads an array of any shape as float32 from a file that OpenArrayFile reads. Values
// outside the range of float32 become infinite.
func ReadArray(ctx context.Context, path, key string) (tensor.Tensor, error) {
	t, err := readArray(ctx, path, key)
	if err != nil {
		return tensor.Tensor{}, fmt.Errorf("reading an array: %w", err)
	}
	return t, nil
}

func readArray(ctx context.Context, path, key string) (tensor.Tensor, error) {
	file, a, err := openArray(ctx, path, key)
	if err != nil {
		return tensor.Tensor{}, err
	}
	defer file.Close()
	out := tensor.New(a.shape...)
	const step = 1 << 20 // values read at a time
	for at := 0; at < len(out.Data); at += step {
		if err := ctx.Err(); err != nil {
			return tensor.Tensor{}, err
		}
		n := min(step, len(out.Data)-at)
		raw, err := a.read(at, n)
		if err != nil {
			return tensor.Tensor{}, err
		}
		for i := range n {
			out.Data[at+i] = float32(a.value(raw[i*a.bytes:]))
		}
	}
	return out, nil
}
