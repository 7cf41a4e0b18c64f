package dataset

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/filesys"
)

// COCOOptions are the options of OpenCOCO.
type COCOOptions struct {
	Annotations string // JSON file
	Images      string // folder of the images
	Masks       bool   // samples have the class of each pixel, instead of boxes
	// Categories are the names or ids of the categories that masks have, in the order of their
	// classes from 1; nil: all, in the order of their ids.
	Categories []string
}

// COCO is a source of the images of an annotation file in COCO's format, with labelled boxes or
// masks.
type COCO struct {
	fileList
	options    COCOOptions
	images     []cocoImage
	categories []TruthClass
}

// A cocoImage has the size of an image and its objects, in pixels.
type cocoImage struct {
	height, width int
	objects       []Object     // for boxes
	regions       []regionText // for masks: where in the annotation file the pixels of objects are
}

// OpenCOCO opens an annotation file in COCO's format: an object with the lists images (id,
// file_name, height, width), annotations (image_id, category_id, bbox of left, top, width and
// height in pixels, area, iscrowd) and categories (id, name). Other keys are ignored. The samples
// are the images in the order of their ids. An image without annotations is a sample, too.
//
// With Masks, annotations have a segmentation: polygons, or runs of pixels (RLE), compressed or
// not. The mask of an image is made when the image is read. It has class 0 where there is no
// object, and 1 + k in the region of an object of category k, from 0. Pixels of several objects,
// and of groups (iscrowd), have no class (-1). Objects of other categories than those of the
// options are left out. The regions are those of pycocotools, pixel by pixel. The masks are those
// of torchvision's reference of semantic segmentation (ConvertCocoPolysToMask), except that
// torchvision gives the pixels of groups their class.
//
// The fingerprint is a hash of the images, as that of OpenFolder is, and of all objects.
func OpenCOCO(ctx context.Context, o COCOOptions) (*COCO, error) {
	c, err := openCOCO(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("reading annotations %s: %w", o.Annotations, err)
	}
	return c, nil
}

func openCOCO(ctx context.Context, o COCOOptions) (*COCO, error) {
	file, err := filesys.Open(o.Annotations)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer file.Close()
	parsed, err := parseCOCO(contextReader{ctx, file}, o.Masks)
	if err != nil {
		return nil, err
	}
	c := &COCO{fileList: fileList{dir: o.Images, what: "images"}, options: o}
	if err := c.fill(parsed); err != nil {
		return nil, err
	}
	d := newDigest(map[bool]string{false: "coco", true: "coco masks"}[o.Masks])
	if err := c.hash(ctx, d); err != nil {
		return nil, err
	}
	for _, k := range c.categories {
		d.add(k.ID, k.Name)
	}
	for _, m := range c.images {
		d.add(m.height, m.width, len(m.objects))
		for _, b := range m.objects {
			d.add(b.Left, b.Top, b.Right, b.Bottom, b.Area, b.Class, b.Crowd)
		}
		for _, r := range m.regions {
			d.add(r.class, r.hash)
		}
	}
	c.setFingerprint(d)
	return c, nil
}

// cocoFile is the content of an annotation file.
type cocoFile struct {
	images      []cocoImageEntry
	annotations []cocoAnnotation
	categories  []TruthClass
}

type cocoImageEntry struct {
	ID     *int64 `json:"id"`
	File   string `json:"file_name"`
	Height int    `json:"height"`
	Width  int    `json:"width"`
}

type cocoAnnotation struct {
	ID       int64        `json:"id"`
	Image    *int64       `json:"image_id"`
	Category *int         `json:"category_id"`
	Box      []cocoNumber `json:"bbox"`
	Area     *float64     `json:"area"`
	Crowd    int          `json:"iscrowd"`

	Segmentation json.RawMessage `json:"segmentation"` // nil after parseCOCO

	region *regionText // for masks
}

// parseCOCO reads an annotation file entry by entry, so that its polygons, which are most of its
// bytes, never fill memory. With masks set it checks them and keeps where they are.
func parseCOCO(r io.Reader, masks bool) (*cocoFile, error) {
	numbers := newNaNReader(r)
	dec := json.NewDecoder(numbers)
	out := &cocoFile{}
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, cocoSyntax(dec, err, "it is not a JSON object with images, annotations and categories")
	}
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, cocoSyntax(dec, err, "")
		}
		key, _ := t.(string)
		if seen[key] {
			return nil, fmt.Errorf("the key %q occurs twice", key)
		}
		seen[key] = true
		switch key {
		case "images":
			err = decodeList(dec, key, func(e cocoImageEntry, _, _ int64) { out.images = append(out.images, e) })
		case "annotations":
			err = decodeList(dec, key, func(e cocoAnnotation, from, to int64) {
				if masks {
					e.region = newRegionText(e.Segmentation, numbers.inFile(from), numbers.inFile(to))
				}
				e.Segmentation = nil
				out.annotations = append(out.annotations, e)
			})
		case "categories":
			err = decodeList(dec, key, func(e TruthClass, _, _ int64) { out.categories = append(out.categories, e) })
		default:
			var other json.RawMessage
			err = cocoSyntax(dec, dec.Decode(&other), "")
		}
		if err != nil {
			return nil, err
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, cocoSyntax(dec, err, "")
	}
	for _, key := range []string{"images", "annotations", "categories"} {
		if !seen[key] {
			return nil, fmt.Errorf("it has no %s: annotations in COCO's format have images, annotations and categories", key)
		}
	}
	return out, nil
}

// decodeList decodes a list, the value of a key, and calls f for each entry, with the offsets in
// bytes between which it lies.
func decodeList[T any](dec *json.Decoder, key string, f func(e T, from, to int64)) error {
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return cocoSyntax(dec, err, key+" is not a list")
	}
	for i := 0; dec.More(); i++ {
		var e T
		from := dec.InputOffset()
		if err := dec.Decode(&e); err != nil {
			return fmt.Errorf("%s[%d]: %w", key, i, cocoSyntax(dec, err, ""))
		}
		f(e, from, dec.InputOffset())
	}
	_, err := dec.Token()
	return cocoSyntax(dec, err, "")
}

// cocoSyntax describes an error of the decoder, with its position in bytes. If err is nil, it
// returns text as an error, or nil if text is empty.
func cocoSyntax(dec *json.Decoder, err error, text string) error {
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil && text == "":
		return nil
	case err == nil:
		return errors.New(text)
	case errors.As(err, &kind):
		return fmt.Errorf("%s is a %s", kind.Field, kind.Value)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it is truncated, or empty")
	}
	return fmt.Errorf("byte %d: %w", dec.InputOffset(), err)
}

// fill sets images, objects and classes from a file.
func (c *COCO) fill(f *cocoFile) error {
	classOf := map[int]int{}
	slices.SortStableFunc(f.categories, func(a, b TruthClass) int { return a.ID - b.ID })
	for i, k := range f.categories {
		if _, twice := classOf[k.ID]; twice {
			return fmt.Errorf("two categories have the id %d", k.ID)
		}
		classOf[k.ID] = i
	}
	c.categories = f.categories
	if c.options.Masks {
		if err := c.chooseCategories(classOf); err != nil {
			return err
		}
	}
	indexOf, err := c.fillImages(f.images)
	if err != nil {
		return err
	}
	for i, a := range f.annotations {
		fail := func(format string, args ...any) error {
			return fmt.Errorf("annotations[%d] (id %d): "+format, append([]any{i, a.ID}, args...)...)
		}
		if a.Image == nil || a.Category == nil {
			return fail("it lacks image_id or category_id")
		}
		index, ok := indexOf[*a.Image]
		if !ok {
			return fail("no image has the id %d", *a.Image)
		}
		class, ok := classOf[*a.Category]
		if !ok {
			return fail("no category has the id %d", *a.Category)
		}
		if c.options.Masks {
			if err := c.images[index].addRegion(a.region, class, a.Crowd != 0); err != nil {
				return fail("%w", err)
			}
			continue
		}
		if len(a.Box) != 4 || a.Box[2] < 0 || a.Box[3] < 0 {
			return fail("bbox is %v, not [left, top, width, height] in pixels", a.Box)
		}
		o := Object{Left: float64(a.Box[0]), Top: float64(a.Box[1]), Right: float64(a.Box[0] + a.Box[2]), Bottom: float64(a.Box[1] + a.Box[3]), Area: float64(a.Box[2] * a.Box[3]), Class: class, Crowd: a.Crowd != 0}
		if a.Area != nil {
			o.Area = *a.Area
		}
		c.images[index].objects = append(c.images[index].objects, o)
	}
	return nil
}

// fillImages sets the images, in the order of their ids, and returns the index of each id.
func (c *COCO) fillImages(entries []cocoImageEntry) (indexOf map[int64]int, err error) {
	if len(entries) == 0 {
		return nil, errors.New("it has no images")
	}
	for i, e := range entries {
		switch {
		case e.ID == nil || e.File == "":
			return nil, fmt.Errorf("images[%d] lacks id or file_name", i)
		case e.Height <= 0 || e.Width <= 0:
			return nil, fmt.Errorf("images[%d] (%s) has height %d and width %d", i, e.File, e.Height, e.Width)
		case !filepath.IsLocal(filepath.FromSlash(e.File)):
			return nil, fmt.Errorf("images[%d]: %s is outside of the folder of the images", i, e.File)
		}
	}
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b cocoImageEntry) int {
		return cmp.Or(cmp.Compare(*a.ID, *b.ID), strings.Compare(a.File, b.File))
	})
	indexOf = make(map[int64]int, len(entries))
	for i, e := range entries {
		if _, twice := indexOf[*e.ID]; twice {
			return nil, fmt.Errorf("two images have the id %d", *e.ID)
		}
		indexOf[*e.ID] = i
		info, err := os.Stat(filepath.Join(c.dir, e.File))
		if err != nil {
			return nil, fmt.Errorf("image %s in %s: %w", e.File, c.dir, errors.Unwrap(err))
		}
		c.files = append(c.files, fileEntry{name: e.File, size: info.Size(), label: NoLabel})
		c.images = append(c.images, cocoImage{height: e.Height, width: e.Width})
	}
	return indexOf, nil
}

func (c *COCO) truthClasses() []TruthClass { return c.categories }

// At decodes image i, and resizes and crops it as frame says, with its mask, or its objects in
// fractions of the framed image. The Area of a Truth is that of the framed image, and the Area of
// an Object is its own, both in pixels of the image file. If the file cannot be read, or its height
// or width differs from that in the annotations, the error is a *BadSample.
func (c *COCO) At(ctx context.Context, i int, frame Frame) (Sample, error) {
	if err := checkAccess(ctx, "folder "+c.dir, i, len(c.files)); err != nil {
		return Sample{}, err
	}
	return c.watched.read(ctx, i, func() (Sample, error) { return c.at(ctx, i, frame) })
}

func (c *COCO) at(ctx context.Context, i int, frame Frame) (Sample, error) {
	s, m := c.Describe(i), c.images[i]
	file := filepath.Join(c.dir, s.Name)
	h, w, err := imageSize(file)
	if err == nil && (h != m.height || w != m.width) {
		err = fmt.Errorf("the image has %d x %d pixels, and the annotations say %d x %d", w, h, m.width, m.height)
	}
	if err == nil {
		s.Input, err = frameFile(ctx, file, frame)
	}
	if err != nil {
		return s, asBadSample(ctx, s.Name, err)
	}
	if c.options.Masks {
		mask, err := c.mask(m, frame)
		s.Truth = &Truth{Mask: mask, Area: frame.area(h, w)}
		return s, err
	}
	s.Truth = &Truth{Objects: make([]Object, len(m.objects)), Area: frame.area(h, w), Cropped: frame.crops(h, w)}
	for k, o := range m.objects {
		o.Left, o.Top = frame.fractions(o.Left, o.Top, h, w)
		o.Right, o.Bottom = frame.fractions(o.Right, o.Bottom, h, w)
		s.Truth.Objects[k] = o
	}
	return s, nil
}
