package main

import (
	"context"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/dataset/video"
	"github.com/noether-ml/noether/tensor"
)

// stills returns whitened patches of still images, n x side x side, with values in [-1, 1]: the
// training data. The images of the folder are split into parts; the patches are of the first one,
// and the study measures on the others. places is the number of patches of an image.
func stills(ctx context.Context, folder string, parts, side, places int, seed uint64) (tensor.Tensor, error) {
	all, err := dataset.OpenFolder(ctx, dataset.FolderOptions{Dir: folder})
	if err != nil {
		return tensor.Tensor{}, err
	}
	images, err := dataset.Split(ctx, all, 0, 1/float64(parts), dataset.SplitOptions{Seed: 1})
	if err != nil {
		return tensor.Tensor{}, err
	}
	src, err := video.OpenCamera(ctx, video.CameraOptions{Images: images, Motion: "still", Patches: video.Patches{Size: side, Places: places, Seed: seed}})
	if err != nil {
		return tensor.Tensor{}, err
	}
	defer src.Close()
	out := tensor.New(src.Len(), side, side)
	for i := range src.Len() {
		s, err := src.At(ctx, i, dataset.Frame{})
		if err != nil {
			return out, err
		}
		for j, v := range s.Input.Data {
			out.Data[i*side*side+j] = 2*v - 1
		}
	}
	return out, nil
}

// divided splits patterns into training and validation: every tenth is for validation.
func divided(x tensor.Tensor) (patterns, held tensor.Tensor) {
	const every = 10
	n, width := x.Shape[0], tensor.Size(x.Shape[1:])
	patterns, held = tensor.New(n-(n+every-1)/every, width), tensor.New((n+every-1)/every, width)
	p, h := patterns.Data, held.Data
	for i := range n {
		row := x.Data[i*width : (i+1)*width]
		if i%every == 0 {
			h = h[copy(h, row):]
		} else {
			p = p[copy(p, row):]
		}
	}
	return patterns, held
}
