package review

// align walks two sequences side by side: what is equal in both, as much of it
// as can be in order, and between that what may be one thing changed. fn gets
// pairs in order; nil stands for what is on one side only. Equal pairs are
// left out.
func align[T any](a, b []*T, equal, alike func(x, y *T) bool, fn func(x, y *T)) {
	for len(a) > 0 && len(b) > 0 && equal(a[0], b[0]) {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && equal(a[len(a)-1], b[len(b)-1]) {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	i, j := 0, 0
	for _, p := range append(common(a, b, equal), [2]int{len(a), len(b)}) {
		gap(a[i:p[0]], b[j:p[1]], alike, fn)
		i, j = p[0]+1, p[1]+1
	}
}

// gap pairs what is left between two equal places.
func gap[T any](a, b []*T, alike func(x, y *T) bool, fn func(x, y *T)) {
	i, j := 0, 0
	for _, p := range append(common(a, b, alike), [2]int{len(a), len(b)}) {
		for ; i < p[0]; i++ {
			fn(a[i], nil)
		}
		for ; j < p[1]; j++ {
			fn(nil, b[j])
		}
		if p[0] < len(a) {
			fn(a[i], b[j])
			i, j = i+1, j+1
		}
	}
}

// most cells of the table that finds the longest common sequence; larger
// inputs are matched greedily.
const mostCells = 16 << 20

// common returns the indexes of a longest common sequence.
func common[T any](a, b []*T, equal func(x, y *T) bool) (pairs [][2]int) {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	if len(a)*len(b) > mostCells {
		return greedy(a, b, equal)
	}
	width := len(b) + 1
	best := make([]int32, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			switch {
			case equal(a[i], b[j]):
				best[i*width+j] = best[(i+1)*width+j+1] + 1
			default:
				best[i*width+j] = max(best[(i+1)*width+j], best[i*width+j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case equal(a[i], b[j]):
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case best[(i+1)*width+j] >= best[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}

// greedy looks a little ahead on both sides.
func greedy[T any](a, b []*T, equal func(x, y *T) bool) (pairs [][2]int) {
	const ahead = 200
	for i, j := 0, 0; i < len(a) && j < len(b); {
		found := false
		for d := 0; d < ahead && !found; d++ {
			for k := 0; k <= d && !found; k++ {
				if x, y := i+k, j+d-k; x < len(a) && y < len(b) && equal(a[x], b[y]) {
					pairs = append(pairs, [2]int{x, y})
					i, j, found = x+1, y+1, true
				}
			}
		}
		if !found {
			i, j = i+1, j+1
		}
	}
	return pairs
}
