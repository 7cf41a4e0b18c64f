package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/noether-ml/noether/internal/seed"
)

const (
	side    = 32 // of an image, in pixels
	plane   = side * side
	record  = 1 + 3*plane // bytes of an image: a label and three planes of colour
	classes = 10
)

// writeData writes the data sets on which the networks are trained into a folder: the first n
// images of a binary file of CIFAR-10 as they are, with random labels, and with coloured dots. The
// numbers in their names are the percentages of labels that are random and of dots that show the
// class.
func writeData(file, folder string, n int) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if len(data)%record != 0 {
		return fmt.Errorf("%s has %d bytes, which is not a multiple of %d, the size of a record of CIFAR-10", file, len(data), record)
	}
	if n < 1 || n*record > len(data) {
		return fmt.Errorf("cannot take %d of the %d images of %s", n, len(data)/record, file)
	}
	data = data[:n*record]
	for i := range n {
		if label := data[i*record]; label >= classes {
			return fmt.Errorf("%s: image %d has label %d, but CIFAR-10 has %d classes", file, i, label, classes)
		}
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	for name, change := range map[string]func(images []byte){
		"plain":      func([]byte) {},
		"labels-50":  func(images []byte) { randomLabels(images, 0.5) },
		"labels-100": func(images []byte) { randomLabels(images, 1) },
		"dots-0":     func(images []byte) { addDots(images, 0) },
		"dots-50":    func(images []byte) { addDots(images, 0.5) },
		"dots-100":   func(images []byte) { addDots(images, 1) },
	} {
		images := slices.Clone(data)
		change(images)
		if err := os.WriteFile(filepath.Join(folder, name+".bin"), images, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// randomLabels replaces the labels of a fraction of the images by random ones.
func randomLabels(images []byte, fraction float64) {
	for i := range len(images) / record {
		if r := seed.Rand(1, "resi: label", i); r.Float64() < fraction {
			images[i*record] = byte(r.IntN(classes))
		}
	}
}

// addDots draws a dot of a radius of 3.5 pixels at a random position of each image. With the given
// probability its colour is that of the class, else that of a random class.
func addDots(images []byte, probability float64) {
	for i := range len(images) / record {
		image := images[i*record : (i+1)*record]
		r := seed.Rand(1, "resi: dot", i)
		class, row, column := r.IntN(classes), 2+r.IntN(side-4), 2+r.IntN(side-4)
		if r.Float64() < probability {
			class = int(image[0])
		}
		for y := range side {
			for x := range side {
				if math.Hypot(float64(y-row), float64(x-column)) < 3.5 {
					for c, v := range hue(float64(class) / classes) {
						image[1+c*plane+y*side+x] = v
					}
				}
			}
		}
	}
}

// hue returns the saturated colour of a hue between 0 and 1: red, green and blue.
func hue(h float64) [3]byte {
	var out [3]byte
	for c := range out {
		distance := math.Abs(math.Mod(6*h-2*float64(c)+9, 6) - 3) // from the hue of the primary colour, in sixths
		out[c] = byte(math.Round(255 * min(max(2-distance, 0), 1)))
	}
	return out
}
