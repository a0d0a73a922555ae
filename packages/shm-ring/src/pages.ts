/** The words for kinds of memory pages, in the order of the addon's numbers. */
export type HugePages = 'require' | 'try' | 'off'
export type RingPages = 'huge' | 'transparent' | 'base'

export const HUGE_PAGES: readonly HugePages[] = ['require', 'try', 'off']
export const RING_PAGES: readonly RingPages[] = ['huge', 'transparent', 'base']
