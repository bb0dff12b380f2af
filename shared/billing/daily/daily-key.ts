/** The key of an item of the table `daily`. */
export interface DailyKey {
  /** `account#<account>`, `channel#<channel id>`, `month#2026-11`, `served` or `minutes#2026-11-21`. */
  id: string;
  /**
   * `day#2026-11-22#<model>` or `hour#2026-11-22T09#<model>`; of a month `account#<account>`; of what was served
   * `day#2026-11-22#<model>#<channel id>`; of minutes `minute#2026-11-22T09:41`. All in UTC.
   */
  period: string;
}
