package audio

import (
	"errors"
	"fmt"
	"math/bits"
)

// A flacFrame is a block of samples of each channel, as RFC 9639 defines it (section 9). Samples
// have up to 32 bits, and the difference of two channels 33.
type flacFrame struct {
	channels [][]int64
	read     bitReader
}

// decode decodes the frame at the start of data, of a file of the given format, and returns its
// length in bytes. The samples stay valid until the next call.
func (f *flacFrame) decode(data []byte, channels, depth int) (int, error) {
	f.read = bitReader{data: data}
	n, assignment, err := f.header(channels, depth)
	if err != nil {
		return 0, err
	}
	for c := range f.channels {
		width := depth
		if c == 1 && (assignment == leftSide || assignment == midSide) || c == 0 && assignment == sideRight {
			width++
		}
		if cap(f.channels[c]) < n {
			f.channels[c] = make([]int64, n)
		}
		f.channels[c] = f.channels[c][:n]
		if err := f.subframe(f.channels[c], width); err != nil {
			return 0, err
		}
	}
	end := f.read.align()
	stored := uint16(f.read.bits(16))
	switch {
	case f.read.ended:
		return 0, errFLACEnd
	case crc16.of(data[:end]) != stored:
		return 0, errors.New("the checksum of a frame is wrong")
	}
	f.decorrelate(assignment)
	return end + 2, nil
}

// Values of the channel assignment above the number of independent channels.
const (
	leftSide = 8 + iota
	sideRight
	midSide
)

var errFLACEnd = errors.New("the file ends within a frame")

// header reads the header of a frame, and returns the number of samples of a channel and the
// assignment of the channels.
func (f *flacFrame) header(channels, depth int) (n, assignment int, err error) {
	r := &f.read
	if r.bits(15) != 0b111111111111100 {
		return 0, 0, errors.New("there is no frame")
	}
	r.bits(1) // whether the blocks have different lengths
	size, rate := r.bits(4), r.bits(4)
	assignment = int(r.bits(4))
	width := r.bits(3)
	r.bits(1)
	for i := bits.LeadingZeros8(^uint8(r.bits(8))); i > 1; i-- { // the number of the block or sample, as UTF-8
		r.bits(8)
	}
	switch {
	case size == 1:
		n = 192
	case size >= 2 && size <= 5:
		n = 576 << (size - 2)
	case size == 6 || size == 7:
		n = int(r.bits(8*int(size-5))) + 1
	case size >= 8:
		n = 256 << (size - 8)
	}
	if rate >= 12 {
		r.bits([]int{8, 16, 16, 0}[rate-12])
	}
	end := r.align()
	stored := uint16(r.bits(8))
	frameChannels := assignment + 1
	if assignment >= leftSide {
		frameChannels = 2
	}
	frameDepth := []int{depth, 8, 12, 0, 16, 20, 24, 32}[width]
	switch {
	case r.ended:
		return 0, 0, errFLACEnd
	case crc8.of(r.data[:end]) != stored:
		return 0, 0, errors.New("the checksum of the header of a frame is wrong")
	case n == 0 || assignment > midSide || frameChannels != channels || frameDepth != depth:
		return 0, 0, fmt.Errorf("a frame of %d values of %d channels of %d bits, in a file of %d channels of %d bits", n, frameChannels, frameDepth, channels, depth)
	}
	if len(f.channels) != channels {
		f.channels = make([][]int64, channels)
	}
	return n, assignment, nil
}

// subframe reads the samples x of a channel, of a number of bits each.
func (f *flacFrame) subframe(x []int64, depth int) error {
	r := &f.read
	kind := int(r.bits(7)) // with a zero in front
	wasted := 0
	if r.bits(1) == 1 {
		wasted = r.zeros() + 1
	}
	if depth -= wasted; depth < 1 {
		return errors.New("a channel without bits")
	}
	var err error
	switch {
	case kind == 0:
		v := r.signed(depth)
		for i := range x {
			x[i] = v
		}
	case kind == 1:
		for i := range x {
			x[i] = r.signed(depth)
		}
	case kind >= 8 && kind <= 12:
		err = f.predicted(x, depth, kind-8, true)
	case kind >= 32 && kind < 64:
		err = f.predicted(x, depth, kind-31, false)
	default:
		err = fmt.Errorf("a channel of reserved type %d", kind)
	}
	if wasted > 0 {
		for i := range x {
			x[i] <<= wasted
		}
	}
	if r.ended {
		return errFLACEnd
	}
	return err
}

// fixedPredictors are the coefficients of the samples before, the last first, by their number.
var fixedPredictors = [][]int64{{}, {1}, {2, -1}, {3, -3, 1}, {4, -6, 4, -1}}

// predicted reads the samples of a channel that a fixed predictor of an order predicts, or its own
// one, whose coefficients follow the first samples.
func (f *flacFrame) predicted(x []int64, depth, order int, fixed bool) error {
	r := &f.read
	if order > len(x) {
		return errors.New("a predictor that is longer than its block")
	}
	for i := range order {
		x[i] = r.signed(depth)
	}
	shift, coefficients := int64(0), make([]int64, order)
	if fixed {
		copy(coefficients, fixedPredictors[order])
	} else {
		precision := int(r.bits(4)) + 1
		if shift = r.signed(5); precision > 15 || shift < 0 {
			return fmt.Errorf("a predictor of %d bits, shifted by %d", precision, shift)
		}
		for i := range coefficients {
			coefficients[i] = r.signed(precision)
		}
	}
	if err := f.residuals(x[order:], len(x), order); err != nil {
		return err
	}
	restore(x, coefficients, int(shift))
	return nil
}

// restore adds what the samples before predict to the residuals.
func restore(x, coefficients []int64, shift int) {
	order := len(coefficients)
	for i := order; i < len(x); i++ {
		sum := int64(0)
		for k, c := range coefficients {
			sum += c * x[i-1-k]
		}
		x[i] += sum >> shift
	}
}

// residuals reads the residuals of a block of n samples after the first ones, whose number is the
// order of the predictor.
func (f *flacFrame) residuals(x []int64, n, order int) error {
	r := &f.read
	method := r.bits(2)
	partitions := 1 << r.bits(4)
	if method > 1 || n%partitions != 0 || n/partitions < order {
		return fmt.Errorf("residuals by method %d in %d parts of %d values", method, partitions, n)
	}
	width := 4 + int(method)
	for p := range partitions {
		part := n / partitions
		if p == 0 {
			part -= order
		}
		parameter := int(r.bits(width))
		if parameter == 1<<width-1 { // not compressed
			raw := int(r.bits(5))
			for i := range part {
				x[i] = r.signed(raw)
			}
		} else {
			for i := range part {
				v := uint64(r.zeros())<<parameter | r.bits(parameter)
				x[i] = int64(v>>1) ^ -int64(v&1)
			}
		}
		if r.ended {
			return errFLACEnd
		}
		x = x[part:]
	}
	return nil
}

// decorrelate restores both channels of a frame that holds the difference of two.
func (f *flacFrame) decorrelate(assignment int) {
	if assignment < leftSide {
		return
	}
	first, second := f.channels[0], f.channels[1]
	for i, a := range first {
		b := second[i]
		switch assignment {
		case leftSide:
			second[i] = a - b
		case sideRight:
			first[i] = a + b
		case midSide:
			sum := a<<1 | b&1
			first[i], second[i] = (sum+b)>>1, (sum-b)>>1
		}
	}
}

// A bitReader reads bits, the highest of a byte first. ended reports whether it was read beyond the
// end, where all bits are 0.
type bitReader struct {
	data  []byte
	next  int    // byte that is read next
	held  uint64 // bits that have been read and not returned, at the top
	count int    // their number
	ended bool
}

// fill holds at least 32 bits, if there are as many.
func (r *bitReader) fill() {
	for r.count <= 56 && r.next < len(r.data) {
		r.held |= uint64(r.data[r.next]) << (56 - r.count)
		r.count += 8
		r.next++
	}
}

// bits returns the next n bits, at most 33.
func (r *bitReader) bits(n int) uint64 {
	if r.count < n {
		r.fill()
		if r.count < n {
			r.ended, r.count, r.held = true, 0, 0
			return 0
		}
	}
	v := r.held >> (64 - n) // 0 for n = 0
	r.held <<= n
	r.count -= n
	return v
}

// signed returns the next n bits, at most 33, as a number in two's complement.
func (r *bitReader) signed(n int) int64 {
	return int64(r.bits(n)<<(64-n)) >> (64 - n)
}

// zeros returns the number of zeros before the next one, and passes that too.
func (r *bitReader) zeros() (n int) {
	for {
		if r.fill(); r.count == 0 {
			r.ended = true
			return 0
		}
		if zeros := bits.LeadingZeros64(r.held); zeros < r.count {
			r.held <<= zeros + 1
			r.count -= zeros + 1
			return n + zeros
		}
		n += r.count
		r.held, r.count = 0, 0
	}
}

// align passes the bits up to the next byte, and returns its offset.
func (r *bitReader) align() int {
	r.bits(r.count % 8)
	return r.next - r.count/8
}

// A crcTable computes a cyclic redundancy check of 8 or 16 bits.
type crcTable struct {
	width int
	rest  [256]uint16 // of each byte
}

var crc8, crc16 = newCRC(8, 0x07), newCRC(16, 0x8005)

func newCRC(width int, polynomial uint16) *crcTable {
	t := &crcTable{width: width}
	for i := range t.rest {
		v := uint16(i) << (width - 8)
		for range 8 {
			top := v >> (width - 1) & 1
			v = v<<1 ^ top*polynomial
		}
		t.rest[i] = v & t.mask()
	}
	return t
}

func (t *crcTable) mask() uint16 { return 0xFFFF >> (16 - t.width) }

func (t *crcTable) of(data []byte) uint16 {
	crc := uint16(0)
	for _, b := range data {
		crc = (crc<<8 ^ t.rest[byte(crc>>(t.width-8))^b]) & t.mask()
	}
	return crc
}
