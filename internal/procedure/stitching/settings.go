package stitching

import (
	"fmt"
	"math"
)

const (
	leastSquares = "least-squares"
	random       = "random"
	identity     = "identity"
)

// Settings are the settings of the measure.
type Settings struct {
	Images int     `key:"images" json:"images" default:"2000" min:"4" doc:"largest number of images, taken in random order"`
	Train  float64 `key:"train" json:"train" default:"0.5" min:"0" max:"1" doc:"fraction of the images that train the stitch, above 0 and below 1; the others test it"`
	Start  string  `key:"start" json:"start" default:"least-squares" enum:"least-squares|random|identity" doc:"weights of the untrained stitch: those whose output is nearest to the second layer on the training images, random ones, or the identity, which needs equal numbers of channels"`
	Epochs int     `key:"epochs" json:"epochs" default:"10" min:"0" doc:"passes over the training images; 0: the stitch is not trained"`
	Rate   float64 `key:"rate" json:"rate" default:"0.001" min:"0" doc:"learning rate of Adam, above 0, which falls to 0 as half a cosine"`
	Batch  int     `key:"batch" json:"batch" default:"32" min:"1" doc:"images in one step of training"`
}

func (s Settings) check() error {
	switch {
	case s.Images < 4:
		return fmt.Errorf("images is %d: it must be at least 4", s.Images)
	case !(s.Train > 0 && s.Train < 1):
		return fmt.Errorf("train is %v: it must be above 0 and below 1", s.Train)
	case s.Start != leastSquares && s.Start != random && s.Start != identity:
		return fmt.Errorf("unknown start %q: it must be least-squares, random or identity", s.Start)
	case s.Epochs < 0:
		return fmt.Errorf("epochs is %d: it must be at least 0", s.Epochs)
	case !(s.Rate > 0) || math.IsInf(s.Rate, 0):
		return fmt.Errorf("rate is %v: it must be above 0 and finite", s.Rate)
	case s.Batch < 1:
		return fmt.Errorf("batch is %d: it must be at least 1", s.Batch)
	}
	return nil
}
