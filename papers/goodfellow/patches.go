package main

import (
	"context"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/dataset/video"
	"github.com/noether-ml/noether/tensor"
)

// patches returns the inputs of training and of validation: whitened patches of side x side pixels
// with values in [-1, 1], a row for each, cut from one half of the images.
func (p plan) patches(ctx context.Context) (training, validation tensor.Tensor, err error) {
	var none tensor.Tensor
	all, err := dataset.OpenFolder(ctx, dataset.FolderOptions{Dir: p.images})
	if err != nil {
		return none, none, err
	}
	images, err := dataset.Split(ctx, all, 0, 0.5, dataset.SplitOptions{Seed: 1})
	if err != nil {
		return none, none, err
	}
	// The motion "still" gives the whitened image, from which patches are cut.
	cut := video.Patches{Size: side, Places: p.pick(100, 10), Seed: 1}
	src, err := video.OpenCamera(ctx, video.CameraOptions{Images: images, Motion: "still", Patches: cut})
	if err != nil {
		return none, none, err
	}
	defer src.Close()
	x := tensor.New(src.Len(), side, side)
	for i := range src.Len() {
		s, err := src.At(ctx, i, dataset.Frame{})
		if err != nil {
			return none, none, err
		}
		for j, v := range s.Input.Data {
			x.Data[i*side*side+j] = 2*v - 1
		}
	}
	training, validation = divided(x)
	return training, validation, nil
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
