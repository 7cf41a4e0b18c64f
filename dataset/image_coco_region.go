package dataset

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// A cocoRegion is the region of an object in an image of a COCO data set: the union of polygons, or
// runs of pixels.
type cocoRegion struct {
	// polygons hold x and y of their points in turn, in pixels from the upper left corner of the
	// image. The centre of the first pixel is at (0.5, 0.5).
	polygons [][]float64
	// runs are the lengths of runs of pixels, alternately outside and inside of the region, down
	// the columns of an image of height x width pixels.
	runs          []int
	height, width int
}

// farthest bounds the coordinates of polygons, in pixels. An image has at most 2^27 pixels
// (maxPixels), so no side is longer.
const farthest = 1 << 27

// parseRegion reads the value of segmentation: a list of polygons, or an object with the size
// [height, width] and the counts of runs, as a list or as compressed text (RLE).
func parseRegion(text []byte) (cocoRegion, error) {
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0 || string(text) == "null" || string(text) == "[]":
		return cocoRegion{}, errors.New("it has no segmentation, which masks need")
	case bytes.Contains(text, []byte("null")): // which encoding/json reads as 0
		return cocoRegion{}, errors.New("segmentation has null instead of a number")
	case text[0] == '{':
		return parseRuns(text)
	}
	var r cocoRegion
	if err := json.Unmarshal(text, &r.polygons); err != nil {
		return cocoRegion{}, errors.New("segmentation is neither a list of polygons [x, y, x, y, ...] nor {counts, size}")
	}
	for _, p := range r.polygons {
		if len(p) < 6 || len(p)%2 != 0 {
			return cocoRegion{}, fmt.Errorf("a polygon of segmentation has %d numbers: x and y of at least 3 points are needed", len(p))
		}
		for _, v := range p {
			if !(math.Abs(v) <= farthest) {
				return cocoRegion{}, fmt.Errorf("a polygon of segmentation has the coordinate %v: it is too far from the image", v)
			}
		}
	}
	return r, nil
}

// parseRuns reads a region that is given by runs.
func parseRuns(text []byte) (cocoRegion, error) {
	var rle struct {
		Counts json.RawMessage `json:"counts"`
		Size   []int           `json:"size"`
	}
	if err := json.Unmarshal(text, &rle); err != nil || len(rle.Size) != 2 {
		return cocoRegion{}, errors.New("size of segmentation is not [height, width]")
	}
	r := cocoRegion{height: rle.Size[0], width: rle.Size[1]}
	if r.height <= 0 || r.width <= 0 || r.width > maxPixels/r.height {
		return cocoRegion{}, fmt.Errorf("size of segmentation is %v: the height and the width of an image of at most %d pixels", rle.Size, maxPixels)
	}
	var compressed string
	var err error
	if bytes.HasPrefix(rle.Counts, []byte(`"`)) {
		if err = json.Unmarshal(rle.Counts, &compressed); err == nil {
			r.runs, err = decompressRuns(compressed)
		}
	} else if json.Unmarshal(rle.Counts, &r.runs) != nil {
		err = errors.New("they are neither a list of whole numbers nor text")
	}
	if err != nil {
		return cocoRegion{}, fmt.Errorf("counts of segmentation: %w", err)
	}
	pixels := r.height * r.width
	left := pixels
	for _, n := range r.runs {
		if n < 0 || n > left {
			return cocoRegion{}, fmt.Errorf("counts of segmentation: the run of %d exceeds the %d x %d pixels, of which %d are left", n, r.height, r.width, left)
		}
		left -= n
	}
	if left > 0 {
		return cocoRegion{}, fmt.Errorf("counts of segmentation: they add up to %d of the %d x %d pixels: is it truncated?", pixels-left, r.height, r.width)
	}
	return r, nil
}

// decompressRuns decodes COCO's text of runs. A character from '0' holds five bits of a number, the
// lowest first; its sixth bit is set if more follow. Bit 4 of the last one is the sign, in two's
// complement. From the fourth number on, a number is the difference from the last but one run.
func decompressRuns(text string) ([]int, error) {
	const last = 6 // characters of a number: 30 bits, more than any number of pixels
	var runs []int
	var v, digits int
	for i := range len(text) {
		c := int(text[i]) - '0'
		if c < 0 || c > 63 {
			return nil, fmt.Errorf("character %q at %d is not one of compressed runs", text[i], i)
		}
		v |= c & 31 << (5 * digits)
		digits++
		if c&32 != 0 {
			if digits == last {
				return nil, fmt.Errorf("the number at %d is too long", i+1-last)
			}
			continue
		}
		if c&16 != 0 {
			v -= 1 << (5 * digits)
		}
		if len(runs) > 2 {
			v += runs[len(runs)-2]
		}
		runs = append(runs, v)
		v, digits = 0, 0
	}
	if digits > 0 {
		return nil, errors.New("the text ends within a number: is it truncated?")
	}
	return runs, nil
}

// hash returns a hash of the region, by which a later reading of the file shows whether it changed.
func (r cocoRegion) hash() [sha256.Size]byte {
	var b []byte
	add := func(v uint64) { b = binary.LittleEndian.AppendUint64(b, v) }
	for _, p := range r.polygons {
		add(uint64(len(p)))
		for _, v := range p {
			add(math.Float64bits(v))
		}
	}
	add(uint64(len(r.runs)))
	for _, n := range r.runs {
		add(uint64(n))
	}
	return sha256.Sum256(b)
}
