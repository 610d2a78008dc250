// Bounds of lists of users and of the search for users.

/** Bounds of lists of users. */
export const USER_LIST_LIMITS = {
  /** Users of a filter, up to which they are all read and sorted. */
  fewUsersMax: 1_000,
  /** Rows of refused calls that are read to find such users. */
  fewRefusalsMax: 2_000,
  /** Users that one page looks at, where a filter leaves out many. */
  walkedMax: 2_000,
  /** Users that a page reads at first while it looks for those that pass a filter; then twice as many, ... */
  firstChunkUsers: 100,
  /** ... and so on, up to so many at a time. */
  chunkUsers: 500,
  /** Rows of each day among which the users who cost most are found. */
  costLeadersMax: 30,
  /** Rows of each hour among which the users who were refused most are found. */
  refusalLeadersMax: 5,
  /** Ids, and people, that a search looks through. */
  searchedMax: 50_000,
  /** Users that a search finds. */
  foundMax: 1_000,
  /** People that a search finds. */
  foundPeopleMax: 50,
} as const;
