package dataset

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/tensor"
)

// background is the name of class 0 of masks.
const background = "background"

// A regionText is the place in an annotation file of the region of an object, and what
// newRegionText found there.
type regionText struct {
	from, to      int64             // offsets of the annotation, in bytes
	class         int               // -1: none, for a group of objects (iscrowd)
	hash          [sha256.Size]byte // of the region, to notice that the file has changed
	height, width int               // of the image, from a run-length encoding; 0 for polygons
	err           error             // why the segmentation is invalid; nil: it is valid
}

// newRegionText checks the segmentation of an annotation, which lies between two offsets of the
// file.
func newRegionText(segmentation []byte, from, to int64) *regionText {
	r, err := parseRegion(segmentation)
	return &regionText{from: from, to: to, hash: r.hash(), height: r.height, width: r.width, err: err}
}

// addRegion adds the region of an object of a class. It adds nothing for class 0, that of
// categories that are left out. crowd: the region is that of a group of objects.
func (m *cocoImage) addRegion(r *regionText, class int, crowd bool) error {
	switch {
	case class == 0:
		return nil
	case r.err != nil:
		return r.err
	case r.height > 0 && (r.height != m.height || r.width != m.width):
		return fmt.Errorf("size of segmentation is [%d, %d], and the image has height %d and width %d", r.height, r.width, m.height, m.width)
	}
	r.class = class
	if crowd {
		r.class = -1
	}
	m.regions = append(m.regions, *r)
	return nil
}

// chooseCategories sets c.categories to the classes of masks: the background, then the chosen
// categories of the annotation file. classOf holds the index in c.categories of each id of a
// category. chooseCategories replaces it by the new one, or by 0 for a category that is left out.
func (c *COCO) chooseCategories(classOf map[int]int) error {
	all := c.categories
	c.categories = []TruthClass{{Name: background}}
	if c.options.Categories == nil {
		for _, k := range all {
			classOf[k.ID]++
		}
		c.categories = append(c.categories, all...)
		return nil
	}
	for id := range classOf {
		classOf[id] = 0
	}
	for _, name := range c.options.Categories {
		at := slices.IndexFunc(all, func(k TruthClass) bool { return k.Name == name })
		if id, err := strconv.Atoi(name); at < 0 && err == nil {
			at = slices.IndexFunc(all, func(k TruthClass) bool { return k.ID == id })
		}
		if at < 0 {
			var names []string
			for _, k := range all {
				names = append(names, k.Name)
			}
			return fmt.Errorf("masks: %q is neither the name nor the id of a category; there are %s", name, strings.Join(names, ", "))
		}
		if classOf[all[at].ID] > 0 {
			return fmt.Errorf("masks: the category %s is listed twice", all[at].Name)
		}
		classOf[all[at].ID] = len(c.categories)
		c.categories = append(c.categories, all[at])
	}
	return nil
}

// maskClasses returns the names of the classes of pixels, nil without masks.
func (c *COCO) maskClasses() []string {
	if !c.options.Masks {
		return nil
	}
	var names []string
	for _, k := range c.categories {
		names = append(names, k.Name)
	}
	return names
}

// mask returns the class of each pixel of an image after it is resized and cropped to the frame:
// see Frame.mask.
func (c *COCO) mask(m cocoImage, frame Frame) (tensor.Tensor, error) {
	mask := newRegionMask(m.height, m.width)
	if len(m.regions) > 0 {
		file, err := filesys.Open(c.options.Annotations)
		if err != nil {
			return tensor.Tensor{}, fmt.Errorf("reading annotations: %w", err)
		}
		defer file.Close()
		for _, r := range m.regions {
			region, err := r.read(file)
			if err != nil {
				return tensor.Tensor{}, fmt.Errorf("annotations %s: they changed while they were in use: %w", c.options.Annotations, err)
			}
			mask.add(region, r.class)
		}
	}
	return frame.mask(mask.tensor())
}

// read reads the region from the annotation file.
func (r regionText) read(file *os.File) (cocoRegion, error) {
	text := make([]byte, r.to-r.from)
	if _, err := file.ReadAt(text, r.from); err != nil {
		return cocoRegion{}, err
	}
	var a cocoAnnotation
	if err := json.Unmarshal(withoutNaN(bytes.TrimLeft(text, ", \t\r\n"), "null"), &a); err != nil {
		return cocoRegion{}, err
	}
	region, err := parseRegion(a.Segmentation)
	if err == nil && region.hash() != r.hash {
		err = fmt.Errorf("the region of annotation %d is another", a.ID)
	}
	return region, err
}
