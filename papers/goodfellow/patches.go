package main

import (
	"context"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/dataset/video"
	"github.com/noether-ml/noether/tensor"
)

// stills returns the training data: whitened patches of still images, n x side x side, with values
// in [-1, 1]. The images of the folder are split into the given number of parts. The patches are
// cut from images of the first part, as many from each as places says; the study measures on the
// other parts.
func stills(ctx context.Context, folder string, parts, side, places int, seed uint64) (tensor.Tensor, error) {
	all, err := dataset.OpenFolder(ctx, dataset.FolderOptions{Dir: folder})
	if err != nil {
		return tensor.Tensor{}, err
	}
	images, err := dataset.Split(ctx, all, 0, 1/float64(parts), dataset.SplitOptions{Seed: 1})
	if err != nil {
		return tensor.Tensor{}, err
	}
	// The motion "still" gives one frame of each image, the whitened image, from which patches are
	// cut.
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

// divided splits inputs x, whose first axis counts them, into those for training and those for
// validation, every tenth. Each input becomes a row.
func divided(x tensor.Tensor) (training, validation tensor.Tensor) {
	const every = 10
	n, width := x.Shape[0], tensor.Size(x.Shape[1:])
	training, validation = tensor.New(n-(n+every-1)/every, width), tensor.New((n+every-1)/every, width)
	t, v := training.Data, validation.Data
	for i := range n {
		row := x.Data[i*width : (i+1)*width]
		if i%every == 0 {
			v = v[copy(v, row):]
		} else {
			t = t[copy(t, row):]
		}
	}
	return training, validation
}
